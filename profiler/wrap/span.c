/* Spans of cdmpp.h. Times are ours; bytes come from libcdmpp-wrap.so (process_profile_spans.c)
 * where it is loaded. */
#include <dlfcn.h>
#include <string.h>

#include "profiler/wrap/process_profile_map.h"
#include "profiler/wrap/wrap.h"

struct cdmpp_span {
    cd_wrap_span memory;
    cd_wrap_span_end_call *end; /* NULL: the library is not loaded */
    double wall, cpu;
    char name[48];
};

/* Our own allocation comes before the counters are read, and is released after them. */
cdmpp_status cdmpp_span_begin(const char *name, cdmpp_span **out, cdmpp_err *err) {
    cd_wrap_span_begin_call *begin;
    if (!name || !*name) return CD_FAIL(err, EINVALID, "a span without a name");
    cdmpp_span *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "span %.47s", name);
    memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
    /* dlsym gives object pointers */
    *(void **)&begin = dlsym(RTLD_DEFAULT, CD_WRAP_SPAN_BEGIN);
    *(void **)&s->end = dlsym(RTLD_DEFAULT, CD_WRAP_SPAN_END);
    if (begin && s->end) begin(&s->memory);
    else s->end = NULL;
    s->wall = cd_clock_wall();
    s->cpu = cd_clock_process();
    *out = s;
    return CDMPP_OK;
}

static cdmpp_span_cost cost_of(const cdmpp_span *s) {
    cdmpp_span_cost c = {
        .size = sizeof c, .seconds = s->wall, .cpu_seconds = s->cpu, .missing = ""};
    c.heap_peak = c.heap_live = c.heap_total = c.device_peak = c.device_live = CDMPP_UNKNOWN;
    if (!s->end) {
        c.missing = "libcdmpp-wrap.so is not loaded: run the program by cdmpp-profile wrap";
        return c;
    }
    c.heap_peak = s->memory.peak;
    c.heap_live = s->memory.live;
    c.heap_total = (int64_t)s->memory.total;
    c.device_peak = s->memory.device_peak;
    c.device_live = s->memory.device_live;
    return c;
}

cdmpp_status cdmpp_span_end(cdmpp_span *span, cdmpp_span_cost *cost, cdmpp_err *err) {
    if (!span) return CD_FAIL(err, EINVALID, "no span");
    span->wall = cd_clock_wall() - span->wall;
    span->cpu = cd_clock_process() - span->cpu;
    if (span->end) span->end(&span->memory, span->name, (uint64_t)(span->wall * 1e9));
    const cdmpp_span_cost c = cost_of(span);
    cd_mem_free(span);
    if (!cost) return CDMPP_OK;
    if (cost->size < sizeof c)
        return CD_FAIL(err, EUSAGE, "cdmpp_span_cost.size: expected %zu, found %zu", sizeof c,
                       cost->size);
    const size_t size = cost->size;
    *cost = c;
    cost->size = size;
    return CDMPP_OK;
}
