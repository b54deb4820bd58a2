/* What vectorized.c needs where it is compiled for a GPU: one point a thread, all functions and tables on the device. As plain C
   the same text computes all points in turn. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define OUT static
#define PIECE static __noinline__ void
#define static static __device__
#define restrict __restrict__
#define KERNEL extern "C" __global__ void
#define FIRST_POINT (blockIdx.x * (long long)blockDim.x + threadIdx.x)
#define POINT_STEP (gridDim.x * (long long)blockDim.x)
#ifdef __CUDACC_RTC__
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define NAN nan("")
#endif
#else
#define OUT static
#define PIECE static __attribute__((noinline)) void
#define KERNEL __attribute__((visibility("default"))) void
#define FIRST_POINT 0
#define POINT_STEP 1
#endif
