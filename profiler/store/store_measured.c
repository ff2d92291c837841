/* Adds measurements as they are made. The environment (host, processor, kernel, governor, compiler)
 * is read once, when the store is opened, since it is the same for all measurements of a run. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "profiler/describe/describe.h"
#include "profiler/host/host.h"
#include "profiler/store/store.h"

struct cd_store_measured {
    cd_store *s;
    const cd_store_measured_options *o;
    cd_host_info h;
    char device[128]; /* its name and the type of core */
    cd_buf extra;     /* the host as JSON */
    struct utsname system;
    cd_store_env env;
};

static cd_str str(const char *s) { return (cd_str){s, strlen(s)}; }

static void set_device(cd_store_measured *k, const char *name) {
    snprintf(k->device, sizeof k->device, "%s%s%s", name, k->o->core ? "-" : "",
             k->o->core ? k->o->core : "");
}

/* The name that records of this machine have where no file describes it: what a processor says is
 * the name of several generations. */
static cdmpp_status name_device(cd_store_measured *k, cdmpp_err *err) {
    cd_describe_name is;
    CD_TRY(cd_describe_name_cpu("", NULL, &is, err));
    set_device(k, is.name);
    return CDMPP_OK;
}

cdmpp_status cd_store_measured_open(const cd_store_measured_options *o, cd_store_measured **out,
                                    cdmpp_err *err) {
    cd_store_measured *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "store");
    k->o = o;
    cd_host_info_read("", &k->h);
    cd_host_info_json(&k->extra, &k->h);
    if (uname(&k->system)) memset(&k->system, 0, sizeof k->system);
    k->env = (cd_store_env){.host = str(k->system.nodename),
                            .cpu = str(k->h.cpu),
                            .os = str(k->h.kernel),
                            .governor = str(k->h.governor),
                            .compiler = str(o->compiler ? o->compiler : ""),
                            .tool = str("cdmpp-profile " CDMPP_VERSION),
                            .extra = {k->extra.p, k->extra.n}};
    cdmpp_status st = name_device(k, err);
    if (!st && k->extra.oom) st = CD_FAIL(err, ENOMEM, "store");
    if (!st) st = cd_store_open(o->path, true, &k->s, err);
    if (st) cd_store_measured_close(k, NULL);
    else *out = k;
    return st;
}

static cd_str device_of(const cd_store_measured *k, cd_str target) {
    const cd_backend_kind *kind = cd_backend_for_target(target);
    if (kind && strcmp(kind->name, "cpu") != 0)
        return k->o->device ? str(k->o->device) : (cd_str){"", 0};
    return str(k->device);
}

cdmpp_status cd_store_measured_add(cd_store_measured *k, const cd_record *r, const cd_task *t,
                                   const cd_measure_result *m, long line, cdmpp_err *err) {
    const cd_timing *x = &m->time;
    cd_store_latency l = {x->min_s, x->median_s, x->mean_s, x->std_s, x->cv, x->n_kept, 0};
    if (m->flags & CD_MEASURE_NOISY) l.flags |= CD_STORE_NOISY;
    if (k->o->cold) l.flags |= CD_STORE_COLD;
    return cd_store_add_record(k->s, r, t, device_of(k, r->target), &k->env, &l, line, NULL, err);
}

/* Of another host nothing but this text is known. */
void cd_store_measured_host(cd_store_measured *k, const char *host, const char *cpu) {
    cd_describe_entry e;
    cd_describe_entry_init(&e, CD_DEVICE_CPU);
    cd_describe_entry_set_name(&e, cpu);
    set_device(k, e.name);
    k->env = (cd_store_env){.host = str(host),
                            .cpu = str(cpu),
                            .os = str(""),
                            .governor = str(""),
                            .compiler = k->env.compiler,
                            .tool = k->env.tool,
                            .extra = str("")};
}

cdmpp_status cd_store_measured_close(cd_store_measured *k, cdmpp_err *err) {
    if (!k) return CDMPP_OK;
    const cdmpp_status st = k->s ? cd_store_commit(k->s, err) : CDMPP_OK;
    cd_store_close(k->s);
    cd_buf_free(&k->extra);
    cd_mem_free(k);
    return st;
}
