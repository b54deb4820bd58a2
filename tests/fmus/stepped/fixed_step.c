/* A plant with an integrator of a fixed step inside, for tests/fixed_step_battery.py.

   gen.h defines rates, jac (row by row), outs, X0, U0 and GROUP (0: a position); the compiler's -D are
     NX, NU, NY, H (the step), SOLVER (its number in INTEGRATORS),
     MODE: 1 stands still until its own step fits, 3 takes the communication step for its own, 4 refuses others, 5 rounds.
   Value references: states x, inputs u, outputs y, one after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fmi2Functions.h"

typedef struct { double x[NX+1], dx[NX+1], u[NU+1], used[NU+1], y[NY+1], mem[2*NX+1], time, origin, next_tick, tolerance; int running, loose, count; } Model;
#include "gen.h"
static void look(Model *m){ outs(m->x, m->used, m->y); }
static void newton(const double *rhs, double g, double *x, const double *u){ /* x - g f(x,u) = rhs */
  double J[NX+1][NX+1], r[NX+1], A[NX+1][NX+2];
  for(int it=0; it<50; it++){
    double f[NX+1]; rates(x,u,f); jac(x,u,(double*)J);
    double big=0;
    for(int i=0;i<NX;i++){ for(int j=0;j<NX;j++) A[i][j]=(i==j)-g*((double*)J)[i*NX+j]; A[i][NX]=-(x[i]-g*f[i]-rhs[i]); }
    for(int c=0;c<NX;c++){ int p=c; for(int i=c;i<NX;i++) if(fabs(A[i][c])>fabs(A[p][c])) p=i;
      for(int j=0;j<=NX;j++){double t=A[c][j];A[c][j]=A[p][j];A[p][j]=t;}
      for(int i=c+1;i<NX;i++){ double q=A[i][c]/A[c][c]; for(int j=c;j<=NX;j++) A[i][j]-=q*A[c][j]; } }
    for(int i=NX-1;i>=0;i--){ double s=A[i][NX]; for(int j=i+1;j<NX;j++) s-=A[i][j]*r[j]; r[i]=s/A[i][i]; }
    for(int i=0;i<NX;i++){ x[i]+=r[i]; if(fabs(r[i])>big*(1)) big=fabs(r[i]); }
    if(big<1e-17) break; if(it>8 && big<1e-14) break;
  }
}
static void integrate(Model *m,double h){
  double k[4][NX+1], x[NX+1], b[NX+1]; const double *u=m->u; static const double at[]={0,.5,.5,1};
  memcpy(m->used,m->u,sizeof m->u);
  rates(m->x,u,k[0]);
  switch(SOLVER){
  case 0: for(int i=0;i<NX;i++) m->x[i]+=h*k[0][i]; break; /* Euler */
  case 1: for(int i=0;i<NX;i++) if(GROUP[i]) m->x[i]+=h*k[0][i]; rates(m->x,u,k[1]); for(int i=0;i<NX;i++) if(!GROUP[i]) m->x[i]+=h*k[1][i]; break;
  case 2: for(int i=0;i<NX;i++) if(!GROUP[i]) m->x[i]+=h*k[0][i]; rates(m->x,u,k[1]); for(int i=0;i<NX;i++) if(GROUP[i]) m->x[i]+=h*k[1][i]; break;
  case 3: for(int i=0;i<NX;i++) x[i]=m->x[i]+h/2*k[0][i]; rates(x,u,k[1]); for(int i=0;i<NX;i++) m->x[i]+=h*k[1][i]; break; /* midpoint */
  case 4: for(int i=0;i<NX;i++) x[i]=m->x[i]+h*k[0][i]; rates(x,u,k[1]); for(int i=0;i<NX;i++) m->x[i]+=h/2*(k[0][i]+k[1][i]); break; /* Heun */
  case 5: for(int s=1;s<4;s++){ for(int i=0;i<NX;i++) x[i]=m->x[i]+at[s]*h*k[s-1][i]; rates(x,u,k[s]); }
     for(int i=0;i<NX;i++) m->x[i]+=h/6*(k[0][i]+2*k[1][i]+2*k[2][i]+k[3][i]); break;
  case 6: for(int i=0;i<NX;i++) b[i]=m->x[i]+h/2*k[0][i]; newton(b,h/2,m->x,u); break; /* trapezoid */
  case 7: memcpy(b,m->x,sizeof b); newton(b,h,m->x,u); break; /* backward Euler */
  case 8: memcpy(x,m->x,sizeof x); if(!m->count){ memcpy(b,m->x,sizeof b); newton(b,h,m->x,u);} /* BDF2 */
     else { for(int i=0;i<NX;i++) b[i]=(4*m->x[i]-m->mem[i])/3; newton(b,2*h/3,m->x,u);} memcpy(m->mem,x,sizeof x); break;
  case 9: for(int i=0;i<NX;i++) m->x[i]+= m->count? h*(1.5*k[0][i]-.5*m->mem[i]) : h*k[0][i]; memcpy(m->mem,k[0],sizeof k[0]); break; /* AB2 */
  }
  m->count++;
}
static int may_be_taken_back(Model *m,double h,int forgets){
  const double own=H,end=m->time+h; int n=(int)ceil(h/own-1e-9);
  if(MODE==4 && fabs(h/own-round(h/own))>1e-6) return 0;
  if(MODE==3) n=1;
  if(MODE==5) n=(int)round(h/own), n=n<1?1:n;
  if(MODE==6) n=1;
  if(MODE==1) n=(int)floor((end-m->origin)/own+1e-6)-m->count;
  if(MODE==2) n=(int)ceil((end-m->origin)/own-1e-9)-m->count;
  for(int i=0;i<n;i++) integrate(m, MODE==1||MODE==2||MODE>=5?own:h/n);
  m->time=end; return 1;
}
static Model *made(void){ Model *m=calloc(1,sizeof(Model)); static const double a[]=X0, b[]=U0; memcpy(m->x,a,NX*sizeof(double)); memcpy(m->u,b,NU*sizeof(double)); memcpy(m->used,b,NU*sizeof(double)); return m; }
static double *at(Model *m,unsigned vr){
  if(vr<NX) return m->x+vr; if((vr-=NX)<NU) return m->u+vr; return (vr-=NU)<NY? m->y+vr:NULL; }
static int get(Model *m,const unsigned *vr,size_t n,double *value){
  memcpy(m->used,m->u,sizeof m->u);
  look(m); for(size_t i=0;i<n;i++) value[i]=*at(m,vr[i]); return 1; }
static int set(Model *m,const unsigned *vr,size_t n,const double *value){
  for(size_t i=0;i<n;i++){ *at(m,vr[i])=value[i]; if(!m->running && vr[i]>=NX) m->used[vr[i]-NX]=value[i]; }
  m->origin=m->running?m->origin:m->time; return 1; }
static void saved(Model *m,void **s){ if(!*s) *s=malloc(sizeof *m); memcpy(*s,m,sizeof *m); }
static void restored(Model *m,const void *s){ memcpy(m,s,sizeof *m); }
#include "stepped2.h"
