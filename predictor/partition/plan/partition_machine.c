/* Devices of a plan: out of a file, or what cpuN and oclN usually are, so that a first plan needs
 * no measurement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predictor/partition/plan/partition_internal.h"
#include "profiler/describe/describe.h"

/* Seconds measured on two cores of a server and PoCL on it: a call through a pointer, a thread that
 * waits, a native kernel handed to a queue. link measure measures those of another machine. */
static const double CPU_LAUNCH_S = 2e-7, OCL_LAUNCH_S = 4e-6, SYNC_S = 1e-6, OCL_WAKE_S = 20e-6;
enum { SUBDEVICES = 2, MAX_CORE = 4095, MAX_TIMES = 1000000 };

/* ---- without a description ---- */
static bool numbered(const char *name, const char *word, int *out) {
    char *end;
    const size_t n = strlen(word);
    if (strncmp(name, word, n) || name[n] < '0' || name[n] > '9') return false;
    const long v = strtol(name + n, &end, 10);
    *out = (int)v;
    return !*end && v <= MAX_CORE;
}

/* ocl0 is the last of two subdevices of PoCL's first device, which then stays on core 1; ocl1 is
 * the one before. */
static cdmpp_status add_usual(cd_partition *p, const char *name, cdmpp_err *err) {
    char subdevice[32];
    int n = 0;
    cd_machine_device d = {.name = name,
                           .kind = "cpu",
                           .scale = 1,
                           .times = 1,
                           .launch_s = CPU_LAUNCH_S,
                           .sync_s = SYNC_S};
    if (numbered(name, "cpu", &n)) d.core = n;
    else if (numbered(name, "ocl", &n) && n < SUBDEVICES) {
        snprintf(subdevice, sizeof subdevice, "pocl:0/%d.%d", SUBDEVICES, SUBDEVICES - 1 - n);
        d.kind = "native";
        d.opencl = subdevice;
        d.core = SUBDEVICES - 1 - n;
        d.launch_s = OCL_LAUNCH_S;
        d.wake_s = OCL_WAKE_S;
    } else
        return CD_FAIL(err, EUSAGE,
                       "device '%.60s': without --machine there are cpu0, cpu1, ... and ocl0, "
                       "ocl1; add --machine FILE, which describes it",
                       name);
    return cd_machine_add(&p->all, &d, err);
}

/* Without a description a device is one of this machine. A plan that is read needs it only where it
 * runs. */
static cdmpp_status find_opencl(const cd_partition *p, const char *subdevice, cdmpp_err *err) {
    cd_describe_entry e;
    return p->o->plan && !p->o->run ? CDMPP_OK
                                    : cd_describe_gpu_apart("opencl", subdevice, &e, err);
}

static cdmpp_status are_here(const cd_partition *p, cdmpp_err *err) {
    cdmpp_err why = {0};
    for (uint32_t k = 0; k < p->all.n; k++) {
        const cd_machine_device *d = &p->all.device[k];
        const cdmpp_status st = d->opencl ? find_opencl(p, d->opencl, &why) : CDMPP_OK;
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "a device");
        if (st)
            return CD_FAIL(err, EBACKEND,
                           "%s is not on this machine (%.120s): --devices names cpu0, cpu1, ..., "
                           "--machine FILE describes another machine",
                           d->name, why.msg);
    }
    return CDMPP_OK;
}

/* A processor core and PoCL on another one; where there is no OpenCL, two cores. */
static const char *usual_devices(const cd_partition *p) {
    cdmpp_err why = {0};
    const char *cores = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "cpu0,cpu1" : "cpu0";
    if (!find_opencl(p, "pocl:0/2.1", &why)) {
        cd_log_put(p->o->log, CD_LOG_INFO,
                   "devices: cpu0 and ocl0, which is another core of this processor through OpenCL "
                   "(PoCL); --devices names others");
        return "cpu0,ocl0";
    }
    cd_log_put(p->o->log, CD_LOG_WARNING,
               "ocl0 is not on this machine (%s): the plan is for %s (--devices names others)",
               why.msg, cores);
    return cores;
}

static cdmpp_status add_all_usual(cd_partition *p, const char *list, cdmpp_err *err) {
    for (const char *s = list; *s;) {
        const size_t n = strcspn(s, ",");
        char *name = cd_str_dup(&p->arena, (cd_str){s, n});
        if (!name) return CD_FAIL(err, ENOMEM, "names");
        if (n) CD_TRY(cd_err_key(err, add_usual(p, name, err), "--devices"));
        s += n + (s[n] == ',');
    }
    if (p->o->devices) CD_TRY(are_here(p, err));
    cd_log_put(p->o->log, CD_LOG_INFO,
               "no --machine: what devices take to start and to wait is usual, not measured "
               "(cdmpp-partition link measure)");
    return CDMPP_OK;
}

/* ---- slower on purpose ---- */
static cdmpp_status slower(cd_partition *p, const char *text, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->machine.n; k++) {
        const char *s = cd_partition_of_device(text, p->machine.device[k].name);
        char *end;
        if (!s) continue;
        const long v = strtol(s, &end, 10);
        if (end == s || *end || v < 1 || v > MAX_TIMES)
            return CD_FAIL(err, EUSAGE,
                           "--times: expected a number in 1..%d behind %s=, found '%.40s'",
                           MAX_TIMES, p->machine.device[k].name, s);
        p->machine.device[k].times = (unsigned)v;
        return CDMPP_OK;
    }
    return CD_FAIL(err, EUSAGE, "--times: '%.60s' is of none of the devices", text);
}

/* Two memories need a link from each to the other. It is checked here, where the error can name
 * both. */
static cdmpp_status linked(const cd_machine *m, cdmpp_err *err) {
    for (uint32_t a = 0; a < m->n; a++)
        for (uint32_t b = 0; b < m->n; b++) {
            const cd_machine_device *x = &m->device[a], *y = &m->device[b];
            if (x->memory == y->memory || cd_link_table_find(&m->links, x->name, y->name)) continue;
            return CD_FAIL(err, ESCHEMA,
                           "no link from %s to %s, whose memories are not one: cdmpp-partition "
                           "link measure, or fit",
                           x->name, y->name);
        }
    return CDMPP_OK;
}

static cdmpp_status fill(cd_partition *p, cdmpp_err *err) {
    CD_TRY(cd_partition_answers(p, err));
    for (size_t k = 0; k < p->o->times.n; k++) CD_TRY(slower(p, p->o->times.v[k], err));
    return CDMPP_OK;
}

/* Devices are described first, then chosen: a file may have more than the plan uses. */
cdmpp_status cd_partition_machine(cd_partition *p, cdmpp_err *err) {
    const cd_partition_options *o = p->o;
    cd_buf all = {0};
    cd_machine_init(&p->all);
    if (o->machine) CD_TRY(cd_machine_read(&p->all, o->machine, err));
    if (p->all.kept)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s was measured while the machine was too noisy: what starting, waiting and "
                   "copying cost is not to be relied on",
                   o->machine);
    if (!o->machine) CD_TRY(add_all_usual(p, o->devices ? o->devices : usual_devices(p), err));
    for (uint32_t k = 0; k < p->all.n; k++)
        cd_buf_putf(&all, "%s%s", k ? "," : "", p->all.device[k].name);
    cdmpp_status st = CDMPP_OK;
    if (all.oom) st = CD_FAIL(err, ENOMEM, "names");
    else
        st = cd_machine_choose(&p->all,
                               o->machine && o->devices ? o->devices
                               : all.p                  ? all.p
                                                        : "",
                               &p->machine, err);
    cd_buf_free(&all);
    CD_TRY(cd_err_key(err, st, o->devices ? "--devices" : "--machine"));
    if (!p->machine.n) return CD_FAIL(err, EUSAGE, "no devices");
    CD_TRY(cd_err_at(err, linked(&p->machine, err), o->machine, 0));
    return fill(p, err);
}
