/* What a thread's arithmetic does with numbers that are too small to be normal. */
#include "profiler/host/host.h"

#if defined(__SSE2__)
enum { FLUSH_RESULTS = 0x8000, FLUSH_OPERANDS = 0x40 };
void cd_denormals_are_zero(void) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSH_RESULTS | FLUSH_OPERANDS);
}
#elif defined(__aarch64__)
void cd_denormals_are_zero(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1 << 24));
}
#else
void cd_denormals_are_zero(void) {}
#endif
