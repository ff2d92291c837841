/* llm_op_machine -- what a GPU is to operators of one type: rates from its description
 * (configs/devices.yaml), and what its board's power allows of them. No state, any thread. */
#ifndef CD_LLM_OP_MACHINE_H
#define CD_LLM_OP_MACHINE_H
#include "features/device/device.h"
#include "features/operators/operators.h"

/* that a multiprocessor reads from the L2 cache in a clock: half of the width of its port, as
 * micro-benchmarks reach */
#define CD_LLM_OP_L2_BYTES_CLOCK 32.0

/* What a GPU is to operators of one type: operations and bytes a second, bytes. */
typedef struct cd_llm_op_machine {
    const cd_device *device; /* NULL: nothing is known yet */
    /* peak: what power allows of the sheet's */
    double sms, clock, sheet, peak, bandwidth, l2, l2_rate, lanes;
    double wide; /* small multiprocessors that one of its own counts as */
} cd_llm_op_machine;
/* Errors: EMODEL: no GPU, or its description lacks a number, or it has no units for the type (the
 * error's key). */
cdmpp_status cd_llm_op_machine_of(const cd_device *d, cd_llm_op_type t, cd_llm_op_machine *m,
                                  cdmpp_err *err);
/* The error of a number of the description that is needed: below 0 it is not there, and the others
 * that operators of language models need and that are not there either are named, too; 0: the GPU
 * has none of it, and `none` says of what. peak: of the type that is asked; NULL: of any. */
cdmpp_status cd_llm_op_machine_lacks(const cd_device *d, const char *key, double x,
                                     const char *none, const char *peak, cdmpp_err *err);
/* What the board's power would allow of the peak in bf16 under full load: below 1 it limits the
 * clock, above 1 it does not; 0: not known. */
double cd_llm_op_machine_power(const cd_device *d);
/* Matrix units have instructions of their own, which kernels are written for (Hopper, Blackwell of
 * data centres): told by the shared memory of a multiprocessor, which feeds them, or by their width
 * where nobody knows it. A GPU that is sold with slower units (H20) has these instructions, too. */
bool cd_llm_op_machine_async(const cd_device *d);
#endif
