/* Conversions on an edge between two devices: both sides' conversions to the host's format are
 * listed, what undoes each other is cancelled, the rest is costed. */
#include "predictor/partition/offload/offload_boundary.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

static const int width[] = {[CD_OFFLOAD_EDGE_INT8] = 1,
                            [CD_OFFLOAD_EDGE_FLOAT16] = 2,
                            [CD_OFFLOAD_EDGE_BFLOAT16] = 2,
                            [CD_OFFLOAD_EDGE_FLOAT32] = 4};
static const char *const dtype_name[] = {"int8", "float16", "bfloat16", "float32"};
static const char *const layout_name[] = {"nchw", "nhwc"};

cd_offload_edge_format cd_offload_edge_format_of(const cd_offload_rules *r, uint32_t rule,
                                                 const cd_offload_edge_format *host) {
    cd_offload_edge_format f = *host;
    if (rule == UINT32_MAX || rule == 0) return f;
    const char *dtype = cd_offload_format(r, rule, "dtype"),
               *layout = cd_offload_format(r, rule, "layout"),
               *rate = cd_offload_format(r, rule, "rate");
    const int d =
        dtype ? cd_enum_names_find(CD_OFFLOAD_EDGE_DTYPES, (cd_str){dtype, strlen(dtype)}) : -1;
    const int l =
        layout ? cd_enum_names_find(CD_OFFLOAD_EDGE_LAYOUTS, (cd_str){layout, strlen(layout)}) : -1;
    if (d >= 0) f.dtype = (cd_offload_edge_dtype)d;
    if (l >= 0) f.layout = (cd_offload_edge_layout)l;
    if (rate) f.rate = strtod(rate, NULL);
    return f;
}

/* ---- steps ---- */

static void put(cd_offload_edge_step *to, uint32_t *n, bool layout, int a, int b, int w) {
    if (a != b) to[(*n)++] = (cd_offload_edge_step){layout, a, b, w};
}

/* Steps of type and of layout are independent. Within one kind a -> b, b -> c is a -> c, so only
 * the last format matters. */
static int end_of(const cd_offload_edge *e, bool layout, int begin) {
    int at = begin;
    for (uint32_t i = 0; i < e->n_all; i++)
        if (e->all[i].layout == layout) at = e->all[i].to;
    return at;
}

/* The steps that remain go directly from one format to the other, at most one of each kind. A step
 * that narrows the type comes before the change of layout, one that widens it behind, so that the
 * layout is always changed on the narrower type. */
void cd_offload_edge_make(const cd_offload_edge_format *from, const cd_offload_edge_format *to,
                          const cd_offload_edge_format *host, cd_offload_edge *out) {
    *out = (cd_offload_edge){0};
    put(out->all, &out->n_all, false, (int)from->dtype, (int)host->dtype, 0);
    put(out->all, &out->n_all, true, (int)from->layout, (int)host->layout, width[host->dtype]);
    put(out->all, &out->n_all, true, (int)host->layout, (int)to->layout, width[host->dtype]);
    put(out->all, &out->n_all, false, (int)host->dtype, (int)to->dtype, 0);
    const int dtype = end_of(out, false, (int)from->dtype),
              layout = end_of(out, true, (int)from->layout);
    const int narrow = width[from->dtype] < width[dtype] ? width[from->dtype] : width[dtype];
    const bool dtype_first = width[dtype] < width[from->dtype];
    if (dtype_first) put(out->step, &out->n, false, (int)from->dtype, dtype, 0);
    put(out->step, &out->n, true, (int)from->layout, layout, narrow);
    if (!dtype_first) put(out->step, &out->n, false, (int)from->dtype, dtype, 0);
    out->packed = narrow / 4.0;
    const double rate = to->rate < from->rate ? to->rate : from->rate;
    for (uint32_t i = 0; i < out->n; i++) {
        const cd_offload_edge_step *s = &out->step[i];
        const int both = s->layout ? 2 * s->width : width[s->from] + width[s->to];
        out->s_per_byte += both / 8.0 / rate;
    }
}

cd_place_link cd_offload_edge_link(const cd_place_link *plain, const cd_offload_edge *e,
                                   double start_s) {
    cd_place_link l = *plain;
    l.packed = e->packed;
    l.convert_s += e->n * start_s;
    l.convert_s_per_byte += e->s_per_byte;
    return l;
}

void cd_offload_edge_print(const cd_offload_edge *e, cd_buf *out) {
    for (uint32_t i = 0; i < e->n; i++) {
        const cd_offload_edge_step *s = &e->step[i];
        const char *const *name = s->layout ? layout_name : dtype_name;
        const char *what = s->layout                         ? "layout"
                           : s->to == CD_OFFLOAD_EDGE_INT8   ? "quantise"
                           : s->from == CD_OFFLOAD_EDGE_INT8 ? "dequantise"
                                                             : "cast";
        cd_buf_putf(out, "%s%s %s -> %s", i ? ", " : "", what, name[s->from], name[s->to]);
    }
}
