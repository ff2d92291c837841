/* What stands before the programs of a translation unit. One list of helpers for
 * all dialects (codegen_expr.c names them), and what each dialect has of its own. */
#include "profiler/codegen/code/code.h"

#define LINE(text) text "\n"

/* INL: how a helper is declared. Smaller and greater as TVM's LLVM code has them: the second where one is NaN. */
#define HELPERS                                                                                                       \
    LINE("#define CD_ORDER(T, S) \\")                                                                                 \
    LINE("INL T cd_min_##S(T a, T b) { return a < b ? a : b; } \\")                                                    \
    LINE("INL T cd_max_##S(T a, T b) { return a > b ? a : b; }")                                                       \
    LINE("#define CD_SIGNED(T, S) CD_ORDER(T, S) \\")                                                                 \
    LINE("INL T cd_abs_##S(T a) { return a < 0 ? -a : a; } \\")                                                        \
    LINE("INL T cd_floordiv_##S(T a, T b) { T q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); } \\")         \
    LINE("INL T cd_floormod_##S(T a, T b) { T m = a % b; return m + (m != 0 && (m < 0) != (b < 0) ? b : 0); }")        \
    LINE("#define CD_UNSIGNED(T, S) CD_ORDER(T, S) INL T cd_abs_##S(T a) { return a; }")                              \
    LINE("CD_ORDER(float, f32)")                                                                                      \
    LINE("INL float cd_abs_f32(float a) { return fabs(a); }")                                                         \
    LINE("CD_SIGNED(int, i32)")                                                                                       \
    LINE("CD_SIGNED(short, i16)")                                                                                     \
    LINE("CD_UNSIGNED(unsigned char, u8)")                                                                            \
    LINE("CD_UNSIGNED(unsigned short, u16)")                                                                          \
    LINE("CD_UNSIGNED(unsigned, u32)")

static const char c_text[] =
    LINE("#include <math.h>")
    LINE("#include <stdint.h>")
    LINE("#include <string.h>")
    LINE("#ifdef _OPENMP")
    LINE("#include <omp.h>")
    LINE("#define cd_thread() omp_get_thread_num()")
    LINE("#define cd_threads() omp_get_num_threads()")
    LINE("#define cd_alone() (omp_get_max_threads() == 1 || omp_in_parallel())")
    LINE("#else")
    LINE("#define cd_thread() 0")
    LINE("#define cd_threads() 1")
    LINE("#define cd_alone() 1")
    LINE("#endif")
    LINE("#define INL static inline __attribute__((always_inline, unused))")
    LINE("#define fabs(x) __builtin_fabsf(x)")
    HELPERS
    LINE("#undef fabs")
    LINE("CD_ORDER(double, f64)")
    LINE("INL double cd_abs_f64(double a) { return __builtin_fabs(a); }")
    LINE("CD_SIGNED(signed char, i8)")
    LINE("CD_SIGNED(long long, i64)")
    LINE("CD_UNSIGNED(unsigned long long, u64)")
    LINE("#ifdef __FLT16_MAX__")
    LINE("CD_ORDER(_Float16, f16)")
    LINE("INL _Float16 cd_abs_f16(_Float16 a) { return a < 0 ? -a : a; }")
    LINE("#endif")
    LINE("INL float cd_sigmoidf(float x) { return 1.0f / (1.0f + expf(-x)); }")
    LINE("INL double cd_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }")
    LINE("INL float cd_rsqrtf(float x) { return 1.0f / sqrtf(x); }")
    LINE("INL double cd_rsqrt(double x) { return 1.0 / sqrt(x); }")
    LINE("INL float cd_exp10f(float x) { return powf(10.0f, x); }")
    LINE("INL double cd_exp10(double x) { return pow(10.0, x); }")
    LINE("#define CD_AS(T, S, FROM, N) INL T cd_as_##S##N(FROM a) { T r; memcpy(&r, &a, sizeof r); return r; }")
    LINE("#define cd_as_f32(x) cd_as_f32_((int)(x))")
    LINE("#define cd_as_i32(x) cd_as_i32_(x)")
    LINE("#define cd_as_f64(x) cd_as_f64_((long long)(x))")
    LINE("#define cd_as_i64(x) cd_as_i64_(x)")
    LINE("CD_AS(float, f32, int, _)")
    LINE("CD_AS(int, i32, float, _)")
    LINE("CD_AS(double, f64, long long, _)")
    LINE("CD_AS(long long, i64, double, _)")
    LINE("INL float cd_bf16_to_f32(unsigned short a) { return cd_as_f32((unsigned)a << 16); }")
    LINE("INL unsigned short cd_f32_to_bf16(float a) {")
    LINE("    unsigned u = (unsigned)cd_as_i32(a);")
    LINE("    if (a != a) return 0x7fc0;")
    LINE("    return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);")
    LINE("}")
    /* Vectors: of values, and of what lies in memory at any place ("u"). */
    /* N elements in a register of B bytes; two take one of four, whose 8 bytes GCC keeps out of the integer ones. */
    LINE("#define CD_VEC(T, S, N, B) \\")
    LINE("typedef T cd_##S##x##N __attribute__((vector_size(B))); \\")
    LINE("typedef T cd_##S##x##N##u __attribute__((vector_size(B), aligned(sizeof(T)), may_alias)); \\")
    LINE("INL cd_##S##x##N cd_splat_##S##x##N(T a) { return a - (cd_##S##x##N){0}; } \\")
    LINE("INL cd_##S##x##N cd_reverse_##S##x##N(cd_##S##x##N a) { \\")
    LINE("    cd_##S##x##N r = a; for (int i = 0; i < N; i++) r[i] = a[N - 1 - i]; return r; } \\")
    LINE("INL cd_##S##x##N cd_min_##S##x##N(cd_##S##x##N a, cd_##S##x##N b) { \\")
    LINE("    cd_##S##x##N r; for (int i = 0; i < B / 4; i++) r[i] = a[i] < b[i] ? a[i] : b[i]; return r; } \\")
    LINE("INL cd_##S##x##N cd_max_##S##x##N(cd_##S##x##N a, cd_##S##x##N b) { \\")
    LINE("    cd_##S##x##N r; for (int i = 0; i < B / 4; i++) r[i] = a[i] > b[i] ? a[i] : b[i]; return r; }")
    LINE("#define CD_FVEC(N, B) CD_VEC(float, f32, N, B) CD_VEC(int, i32, N, B) \\")
    LINE("INL cd_f32x##N cd_sqrt_f32x##N(cd_f32x##N a) { \\")
    LINE("    cd_f32x##N r; for (int i = 0; i < B / 4; i++) r[i] = __builtin_sqrtf(a[i]); return r; } \\")
    LINE("INL cd_f32x##N cd_map_f32x##N(float (*f)(float), cd_f32x##N a) { \\")
    LINE("    cd_f32x##N r = a; for (int i = 0; i < N; i++) r[i] = f(a[i]); return r; }")
    LINE("CD_FVEC(2, 16) CD_FVEC(4, 16) CD_FVEC(8, 32) CD_FVEC(16, 64)")
    LINE("typedef double cd_pair __attribute__((vector_size(16)));")
    LINE("typedef double cd_half __attribute__((aligned(4), may_alias));")
    LINE("INL cd_f32x2 cd_load_f32x2(const float *p) { return (cd_f32x2)(cd_pair){*(const cd_half *)p, 0}; }")
    LINE("INL cd_i32x2 cd_load_i32x2(const int *p) { return (cd_i32x2)(cd_pair){*(const cd_half *)p, 0}; }")
    LINE("INL void cd_store_f32x2(float *p, cd_f32x2 a) { *(cd_half *)p = ((cd_pair)a)[0]; }")
    LINE("INL void cd_store_i32x2(int *p, cd_i32x2 a) { *(cd_half *)p = ((cd_pair)a)[0]; }");

static const char opencl_text[] =
    LINE("#define CD_BLOCK_X ((int)get_group_id(0))")
    LINE("#define CD_BLOCK_Y ((int)get_group_id(1))")
    LINE("#define CD_BLOCK_Z ((int)get_group_id(2))")
    LINE("#define CD_THREAD_X ((int)get_local_id(0))")
    LINE("#define CD_THREAD_Y ((int)get_local_id(1))")
    LINE("#define CD_THREAD_Z ((int)get_local_id(2))")
    LINE("#define INL static inline")
    HELPERS
    LINE("CD_SIGNED(char, i8)")
    LINE("CD_SIGNED(long, i64)")
    LINE("CD_UNSIGNED(ulong, u64)")
    LINE("INL float cd_sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }")
    LINE("#define cd_as_f32(x) as_float((int)(x))")
    LINE("#define cd_as_i32(x) as_int(x)")
    LINE("INL float cd_bf16_to_f32(ushort a) { return as_float((uint)a << 16); }")
    LINE("INL ushort cd_f32_to_bf16(float a) {")
    LINE("    uint u = as_uint(a);")
    LINE("    if (isnan(a)) return 0x7fc0;")
    LINE("    return (ushort)((u + 0x7fff + (u >> 16 & 1)) >> 16);")
    LINE("}");

static const char cuda_text[] =
    LINE("#ifndef INFINITY") /* NVRTC has no math.h */
    LINE("#define INFINITY __int_as_float(0x7f800000)")
    LINE("#endif")
    LINE("#ifndef NAN")
    LINE("#define NAN __int_as_float(0x7fffffff)")
    LINE("#endif")
    LINE("#define CD_BLOCK_X ((int)blockIdx.x)")
    LINE("#define CD_BLOCK_Y ((int)blockIdx.y)")
    LINE("#define CD_BLOCK_Z ((int)blockIdx.z)")
    LINE("#define CD_THREAD_X ((int)threadIdx.x)")
    LINE("#define CD_THREAD_Y ((int)threadIdx.y)")
    LINE("#define CD_THREAD_Z ((int)threadIdx.z)")
    LINE("#define INL static __device__ __forceinline__")
    HELPERS
    LINE("CD_ORDER(double, f64)")
    LINE("INL double cd_abs_f64(double a) { return fabs(a); }")
    LINE("CD_SIGNED(signed char, i8)")
    LINE("CD_SIGNED(long long, i64)")
    LINE("CD_UNSIGNED(unsigned long long, u64)")
    LINE("INL float cd_sigmoidf(float x) { return 1.0f / (1.0f + expf(-x)); }")
    LINE("INL double cd_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }")
    LINE("INL float cd_rsqrtf(float x) { return rsqrtf(x); }")
    LINE("INL double cd_rsqrt(double x) { return rsqrt(x); }")
    LINE("INL float cd_exp10f(float x) { return exp10f(x); }")
    LINE("INL double cd_exp10(double x) { return exp10(x); }")
    LINE("#define cd_as_f32(x) __int_as_float((int)(x))")
    LINE("#define cd_as_i32(x) __float_as_int(x)")
    LINE("INL float cd_bf16_to_f32(unsigned short a) { return __int_as_float((int)((unsigned)a << 16)); }")
    LINE("INL unsigned short cd_f32_to_bf16(float a) {")
    LINE("    unsigned u = (unsigned)__float_as_int(a);")
    LINE("    if (a != a) return 0x7fc0;")
    LINE("    return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);")
    LINE("}");

const char *cd_codegen_prelude(cd_dialect dialect) {
    return dialect == CD_DIALECT_C ? c_text : dialect == CD_DIALECT_OPENCL ? opencl_text : cuda_text;
}

void cd_codegen_code_free(cd_codegen_code *c) {
    if (!c) return;
    cd_buf_free(&c->text);
    cd_arena_free(&c->arena);
    *c = (cd_codegen_code){.dialect = c->dialect};
}
