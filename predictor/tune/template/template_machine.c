/* What templates know of a processor, from this machine or from a description. What is not known is
 * an error, for tiles of a guessed cache would be called computed. */
#include "predictor/tune/template/template.h"
#include "profiler/host/host.h"

enum { KB = 1024, BITS = 8 };

/* Registers of an instruction set. */
static void set_vectors(cd_template_machine *m, cd_isa isa) {
    m->vector_bytes = isa == CD_ISA_AVX512 ? 64 : isa == CD_ISA_AVX2 ? 32 : 16;
    m->registers = isa == CD_ISA_AVX512 || isa == CD_ISA_AARCH64 ? 32 : 16;
}

cdmpp_status cd_template_machine_here(const char *isa, const char *target, int64_t threads,
                                      cd_template_machine *out, cdmpp_err *err) {
    cd_isa_choice c;
    cd_host_info h;
    CD_TRY(cd_isa_choose(isa, target, &c, err));
    cd_host_info_read("", &h);
    if (h.l1d_bytes < 1 || h.l2_bytes < 1)
        return cd_err_key(
            err,
            CD_FAIL(err, EMODEL,
                    "this system does not tell the size of its caches: name a described device"),
            h.l1d_bytes < 1 ? "l1_kb" : "l2_kb");
    *out =
        (cd_template_machine){.l1_bytes = h.l1d_bytes, .l2_bytes = h.l2_bytes, .threads = threads};
    set_vectors(out, c.isa == CD_ISA_NATIVE ? cd_isa_here() : c.isa);
    return CDMPP_OK;
}

cdmpp_status cd_template_machine_of(const cd_device *d, int64_t threads, cd_template_machine *out,
                                    cdmpp_err *err) {
    if (d->kind != CD_DEVICE_CPU)
        return CD_FAIL(err, EMODEL, "%s is a %s, templates are for CPUs", d->name,
                       cd_device_kind_name(d->kind));
    const char *missing = d->simd_bits <= 0 ? "simd_bits"
                          : d->l1_kb <= 0   ? "l1_kb"
                          : d->l2_kb <= 0   ? "l2_kb"
                                            : NULL;
    if (missing)
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL,
                                  "the description of %s has no %s, which templates need", d->name,
                                  missing),
                          missing);
    const int64_t bytes = (int64_t)d->simd_bits / BITS;
    *out = (cd_template_machine){.vector_bytes = bytes,
                                 .registers = bytes >= 64 ? 32 : 16,
                                 .l1_bytes = (int64_t)(d->l1_kb * KB),
                                 .l2_bytes = (int64_t)(d->l2_kb * KB),
                                 .threads = threads};
    return CDMPP_OK;
}
