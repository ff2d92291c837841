/* What stands before the programs of a translation unit: of C the text of embed/prelude.c.in; of
 * the GPU dialects one list of helpers (codegen_expr.c names them, C has them too), and what each
 * dialect has of its own. */
#include "profiler/codegen/code/code.h"
#include "profiler/codegen/code/embed/prelude.c.in.h"

#define LINE(text) text "\n"

/* INL: how a helper is declared. Smaller and greater as TVM's LLVM code has them: the second where
 * one is NaN. */
#define HELPERS                                                                                    \
    LINE("#define CD_ORDER(T, S) \\")                                                              \
    LINE("INL T cd_min_##S(T a, T b) { return a < b ? a : b; } \\")                                \
    LINE("INL T cd_max_##S(T a, T b) { return a > b ? a : b; }")                                   \
    LINE("#define CD_SIGNED(T, S) CD_ORDER(T, S) \\")                                              \
    LINE("INL T cd_abs_##S(T a) { return a < 0 ? -a : a; } \\")                                    \
    LINE("INL T cd_floordiv_##S(T a, T b) { T q = a / b; return q - (a % b != 0 && (a < 0) != (b " \
         "< 0)); } \\")                                                                            \
    LINE("INL T cd_floormod_##S(T a, T b) { T m = a % b; return m + (m != 0 && (m < 0) != (b < "   \
         "0) ? b : 0); }")                                                                         \
    LINE("#define CD_UNSIGNED(T, S) CD_ORDER(T, S) INL T cd_abs_##S(T a) { return a; }")           \
    LINE("CD_ORDER(float, f32)")                                                                   \
    LINE("INL float cd_abs_f32(float a) { return fabs(a); }")                                      \
    LINE("CD_SIGNED(int, i32)")                                                                    \
    LINE("CD_SIGNED(short, i16)")                                                                  \
    LINE("#define CD_DOT4(K) (int)((unsigned)x >> K & 255) * ((int)((unsigned)y << (24 - K)) >> "  \
         "24)")                                                                                    \
    LINE("INL int cd_dot4(int x, int y) { return CD_DOT4(0) + CD_DOT4(8) + CD_DOT4(16) + "         \
         "CD_DOT4(24); }")                                                                         \
    LINE("CD_UNSIGNED(unsigned char, u8)")                                                         \
    LINE("CD_UNSIGNED(unsigned short, u16)")                                                       \
    LINE("CD_UNSIGNED(unsigned, u32)")

static const char opencl_text[] = LINE("#define CD_BLOCK_X ((int)get_group_id(0))") LINE(
    "#define CD_BLOCK_Y ((int)get_group_id(1))") LINE("#define CD_BLOCK_Z ((int)get_group_id(2))")
    LINE("#define CD_THREAD_X ((int)get_local_id(0))")
        LINE("#define CD_THREAD_Y ((int)get_local_id(1))") LINE(
            "#define CD_THREAD_Z ((int)get_local_id(2))") LINE("#define INL static inline")
            HELPERS LINE("CD_SIGNED(char, i8)") LINE("CD_SIGNED(long, i64)") LINE(
                "CD_UNSIGNED(ulong, u64)")
                LINE("INL float cd_sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }") LINE(
                    "#define cd_as_f32(x) as_float((int)(x))")
                    LINE("#define cd_as_i32(x) as_int(x)") LINE(
                        "INL float cd_bf16_to_f32(ushort a) { return as_float((uint)a << 16); }")
                        LINE("INL ushort cd_f32_to_bf16(float a) {")
                            LINE("    uint u = as_uint(a);")
                                LINE("    if (isnan(a)) return 0x7fc0;")
                                    LINE("    return (ushort)((u + 0x7fff + (u >> 16 & 1)) >> 16);")
                                        LINE("}");

static const char cuda_text[] = LINE("#ifndef INFINITY") /* NVRTC has no math.h */
    LINE("#define INFINITY __int_as_float(0x7f800000)") LINE("#endif") LINE("#ifndef NAN")
        LINE("#define NAN __int_as_float(0x7fffffff)") LINE("#endif") LINE(
            "#define CD_BLOCK_X ((int)blockIdx.x)") LINE("#define CD_BLOCK_Y ((int)blockIdx.y)")
            LINE("#define CD_BLOCK_Z ((int)blockIdx.z)") LINE(
                "#define CD_THREAD_X ((int)threadIdx.x)") LINE("#define CD_THREAD_Y "
                                                               "((int)threadIdx.y)")
                LINE("#define CD_THREAD_Z ((int)threadIdx.z)") LINE("#define INL static __device__ "
                                                                    "__forceinline__")
                    HELPERS LINE("CD_ORDER(double, f64)") LINE("INL double cd_abs_f64(double a) { "
                                                               "return fabs(a); }")
                        LINE("CD_SIGNED(signed char, i8)") LINE("CD_SIGNED(long long, i64)") LINE(
                            "CD_UNSIGNED(unsigned long long, "
                            "u64)") LINE("INL float cd_sigmoidf(float x) { return 1.0f / (1.0f + "
                                         "expf(-x)); }")
                            LINE("INL double cd_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); "
                                 "}") LINE("INL float cd_rsqrtf(float x) { return rsqrtf(x); }")
                                LINE("INL double cd_rsqrt(double x) { return rsqrt(x); }") LINE(
                                    "INL float cd_exp10f(float x) { return exp10f(x); }")
                                    LINE("INL double cd_exp10(double x) { return exp10(x); }") LINE(
                                        "#define cd_as_f32(x) __int_as_float((int)(x))")
                                        LINE("#define cd_as_i32(x) __float_as_int(x)") LINE(
                                            "INL float cd_bf16_to_f32(unsigned short a) { return "
                                            "__int_as_float((int)((unsigned)a << 16)); }")
                                            LINE("INL unsigned short cd_f32_to_bf16(float a) {")
                                                LINE(
                                                    "    unsigned u = (unsigned)__float_as_int(a);")
                                                    LINE("    if (a != a) return 0x7fc0;")
                                                        LINE("    return (unsigned short)((u + "
                                                             "0x7fff + (u >> 16 & 1)) >> 16);")
                                                            LINE("}");

const char *cd_codegen_prelude(cd_dialect dialect) {
    return dialect == CD_DIALECT_C        ? prelude_c_in
           : dialect == CD_DIALECT_OPENCL ? opencl_text
                                          : cuda_text;
}

void cd_codegen_code_free(cd_codegen_code *c) {
    if (!c) return;
    cd_buf_free(&c->text);
    cd_arena_free(&c->arena);
    *c = (cd_codegen_code){.dialect = c->dialect};
}
