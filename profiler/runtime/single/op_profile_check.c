/* Results of a network's programs against those of the same tasks without a schedule. */
#include <math.h>

#include "profiler/runtime/single/single_internal.h"

/* Matrices get values scaled as trained weights are, so that results neither vanish nor overflow
 * after many layers. */
cdmpp_status cd_op_profile_write_weights(const cd_executor_net *n, const cd_op_profile_runner *r,
                                         cdmpp_err *err) {
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        const cd_executor_net_tensor *x = &n->tensor[t];
        if (x->role != CD_TENSOR_WEIGHT || x->dtype != CD_F32 || x->rank < 2) continue;
        float *v = cd_mem_alloc(x->bytes ? (size_t)x->bytes : 4);
        if (!v) return CD_FAIL(err, ENOMEM, "weights");
        (void)cd_tensor_fill_weight(CD_F32, t, x->rank, x->shape, v);
        const cdmpp_status st = r->write(r->run, t, v, err);
        cd_mem_free(v);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

cdmpp_status cd_op_profile_write_scalars(const cd_op_profile_net *m, const cd_op_profile_runner *r,
                                         cdmpp_err *err) {
    for (uint32_t k = 0; k < m->net.n_tensor; k++) {
        const float f = (float)m->scalar[k];
        if (m->known[k] && m->tensor[k].role != CD_TENSOR_INNER)
            CD_TRY(r->write(r->run, k, m->known[k], err));
        if (isnan(m->scalar[k]) || m->tensor[k].dtype != CD_F32 ||
            m->tensor[k].role == CD_TENSOR_INNER || m->tensor[k].bytes != 4)
            continue;
        CD_TRY(r->write(r->run, k, &f, err));
    }
    return CDMPP_OK;
}

/* One pass, and all results behind one another. */
static cdmpp_status results(const cd_op_profile_net *m, const cd_op_profile_runner *r, float *to,
                            cdmpp_err *err) {
    const cd_executor_net *n = &m->net;
    double total;
    CD_TRY(cd_op_profile_write_weights(n, r, err));
    CD_TRY(cd_op_profile_write_scalars(m, r, err));
    CD_TRY(r->pass(r->run, NULL, &total, err));
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        if (n->tensor[t].role != CD_TENSOR_RESULT || n->tensor[t].dtype != CD_F32) continue;
        CD_TRY(r->read(r->run, t, to, err));
        to += n->tensor[t].bytes / 4;
    }
    return CDMPP_OK;
}

/* Largest difference of a result, by its largest value. */
static cdmpp_status compare(const cd_executor_net *n, const float *want, const float *got,
                            double *max_error, cdmpp_err *err) {
    *max_error = 0;
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        if (n->tensor[t].role != CD_TENSOR_RESULT || n->tensor[t].dtype != CD_F32) continue;
        const size_t elements = (size_t)n->tensor[t].bytes / 4;
        double far = 0, large = 0;
        for (size_t i = 0; i < elements; i++) {
            if (!isfinite(want[i]) || !isfinite(got[i]))
                return CD_FAIL(err, ENUMERIC, "result %u: element %zu is %g, of the reference %g",
                               t, i, (double)got[i], (double)want[i]);
            far = fmax(far, fabs((double)want[i] - (double)got[i]));
            large = fmax(large, fabs((double)want[i]));
        }
        *max_error = fmax(*max_error, large > 0 ? far / large : far);
        want += elements;
        got += elements;
    }
    return CDMPP_OK;
}

/* ---- this processor ---- */

static cdmpp_status write_here(void *r, uint32_t t, const void *from, cdmpp_err *err) {
    return cd_executor_write(r, t, from, err);
}
static cdmpp_status read_here(void *r, uint32_t t, void *to, cdmpp_err *err) {
    return cd_executor_read(r, t, to, err);
}
static cdmpp_status pass_here(void *r, cd_executor_ran *ran, double *total_s, cdmpp_err *err) {
    (void)err;
    cd_executor_pass(r, ran, total_s);
    return CDMPP_OK;
}

static cd_executor_step_bytes bytes_here(const void *r, uint32_t step) {
    return cd_executor_bytes_of(r, step);
}

cd_op_profile_runner cd_op_profile_runner_cpu(cd_executor *r) {
    return (cd_op_profile_runner){r, write_here, read_here, pass_here, bytes_here};
}

/* ---- an OpenCL device ---- */

static cdmpp_status write_there(void *r, uint32_t t, const void *from, cdmpp_err *err) {
    return cd_executor_opencl_write(r, t, from, err);
}
static cdmpp_status read_there(void *r, uint32_t t, void *to, cdmpp_err *err) {
    return cd_executor_opencl_read(r, t, to, err);
}
static cdmpp_status pass_there(void *r, cd_executor_ran *ran, double *total_s, cdmpp_err *err) {
    return cd_executor_opencl_pass(r, ran, total_s, err);
}

static cd_executor_step_bytes bytes_there(const void *r, uint32_t step) {
    return cd_executor_opencl_bytes_of(r, step);
}

cd_op_profile_runner cd_op_profile_runner_opencl(cd_executor_opencl *r) {
    return (cd_op_profile_runner){r, write_there, read_there, pass_there, bytes_there};
}

/* ---- comparing ---- */

/* The results of the same network with the reference programs, on this processor with one
 * thread. */
static cdmpp_status plain_results(const cd_op_profile_net *m, float *to, cdmpp_err *err) {
    cd_executor_net plain = m->net;
    cd_executor *r = NULL;
    cd_executor_net_step *step = cd_mem_zalloc(plain.n_step + 1, sizeof *step);
    cdmpp_status st = step ? CDMPP_OK : CD_FAIL(err, ENOMEM, "steps");
    for (uint32_t k = 0; k < plain.n_step && !st; k++) {
        if (!m->plain[k])
            st = CD_FAIL(err, EUSAGE, "step %u (%.60s) has no reference to compare with", k,
                         m->step[k].name);
        else
            step[k] = (cd_executor_net_step){m->step[k].name, m->plain[k], m->step[k].tensor,
                                             m->step[k].shape};
    }
    plain.step = step;
    if (!st) st = cd_executor_open(&plain, &(cd_executor_options){.threads = 1}, &r, err);
    const cd_op_profile_runner here = cd_op_profile_runner_cpu(r);
    if (!st) st = results(m, &here, to, err);
    cd_executor_close(r);
    cd_mem_free(step);
    return st;
}

cdmpp_status cd_op_profile_check_with(const cd_op_profile_net *m, const cd_op_profile_runner *r,
                                      cd_op_profile_report *t, cdmpp_err *err) {
    size_t bytes = 0;
    for (uint32_t k = 0; k < m->net.n_tensor; k++)
        if (m->tensor[k].role == CD_TENSOR_RESULT) bytes += (size_t)m->tensor[k].bytes;
    float *want = cd_mem_alloc(bytes + 4), *got = cd_mem_alloc(bytes + 4);
    cdmpp_status st = want && got ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes of results", bytes);
    if (!st) st = plain_results(m, want, err);
    if (!st) st = results(m, r, got, err);
    if (!st) st = compare(&m->net, want, got, &t->max_error, err);
    cd_mem_free(want);
    cd_mem_free(got);
    return st;
}

cdmpp_status cd_op_profile_check(const cd_op_profile_net *m, const cd_op_profile_options *o,
                                 cd_op_profile_report *t, cdmpp_err *err) {
    cd_executor *r = NULL;
    CD_TRY(cd_executor_open(
        &m->net, &(cd_executor_options){.threads = o->threads, .workers = o->workers}, &r, err));
    const cd_op_profile_runner here = cd_op_profile_runner_cpu(r);
    const cdmpp_status st = cd_op_profile_check_with(m, &here, t, err);
    cd_executor_close(r);
    return st;
}
