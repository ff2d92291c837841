/* Writes network.json: the arguments, steps and launches of each region, each constant once, and
 * the conversions between devices. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/emit/offload_emit_internal.h"

static void put_text(cd_buf *b, const char *s) { cd_buf_put_json_str(b, s, strlen(s)); }

static const char *name_of(const cd_emit_plan *p, uint32_t v, char *room, size_t n) {
    const cd_workload_buffer *x = &p->l->work->buffer[v];
    if (x->group != CD_GRAPH_NONE) return p->l->graph->node[x->group].name;
    if (x->tensor != CD_GRAPH_NONE && p->l->source->tensor[x->tensor].name)
        return p->l->source->tensor[x->tensor].name;
    snprintf(room, n, "value%u", v);
    return room;
}

static void put_value(const cd_emit_plan *p, uint32_t v, cd_buf *b) {
    const cd_workload_buffer *x = &p->l->work->buffer[v];
    char room[40], dtype[40];
    cd_buf_putf(b, "{\"value\": %u, \"name\": ", v);
    put_text(b, name_of(p, v, room, sizeof room));
    cd_buf_putf(b, ", \"dtype\": \"%s\", \"shape\": [",
                cd_expr_dtype_format(x->dtype, dtype, sizeof dtype));
    for (uint32_t d = 0; d < x->shape.rank; d++)
        cd_buf_putf(b, "%s%lld", d ? ", " : "", (long long)x->shape.dim[d]);
    cd_buf_putf(
        b, "], \"bytes\": %lld",
        (long long)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype)));
}

/* Constants and inputs in the order of their files, each once. */
static void put_outside(const cd_emit_plan *p, bool constants, cd_buf *b) {
    int64_t at = 0;
    bool first = true;
    for (uint32_t v = 0; v < p->l->work->n_buffer; v++) {
        const cd_workload_buffer *x = &p->l->work->buffer[v];
        if (!p->used[v] || x->value == x->value || x->is_const != constants ||
            (!constants && x->group != CD_GRAPH_NONE))
            continue;
        cd_buf_puts(b, first ? "\n  " : ",\n  ");
        put_value(p, v, b);
        cd_buf_putf(b, ", \"offset\": %lld}", (long long)at);
        at += cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype);
        first = false;
    }
}

static void put_list(const cd_emit_region *r, cd_emit_role role, cd_buf *b) {
    bool first = true;
    cd_buf_puts(b, "[");
    for (uint32_t k = 0; k < r->n_arg; k++) {
        if (r->value[k].role != role) continue;
        cd_buf_putf(b, "%s%u", first ? "" : ", ", r->value[k].value);
        first = false;
    }
    cd_buf_puts(b, "]");
}

/* Without code (the back end reads operators) the list of launches is empty. */
static void put_step(const cd_emit_region *r, const cd_emit_step *s, cd_buf *b) {
    cd_buf_puts(b, "{\"operator\": ");
    put_text(b, s->name);
    cd_buf_puts(b, ", \"type\": ");
    put_text(b, s->type);
    cd_buf_puts(b, ", \"arguments\": [");
    for (uint32_t k = 0; k < s->n_arg; k++)
        cd_buf_putf(b, "%s%u", k ? ", " : "", r->value[s->arg[k]].value);
    cd_buf_puts(b, "], \"launches\": [");
    for (uint32_t k = 0; s->code && k < s->code->n_launch; k++) {
        const cd_codegen_launch *l = &s->code->launch[k];
        cd_buf_putf(
            b, "%s{\"entry\": \"%s\", \"grid\": [%lld, %lld, %lld], \"block\": [%lld, %lld, %lld]}",
            k ? ", " : "", l->entry, (long long)l->grid[0], (long long)l->grid[1],
            (long long)l->grid[2], (long long)l->block[0], (long long)l->block[1],
            (long long)l->block[2]);
    }
    cd_buf_puts(b, "]}");
}

/* "call" is the same for every back end: where its own text does not run on the host, the C
 * stand-in has that symbol. */
static void put_region(const cd_emit_plan *p, uint32_t k, cd_buf *b) {
    const cd_emit_region *r = &p->region[k];
    cd_buf_putf(b, "  {\"name\": \"%s\", \"device\": ", r->name);
    put_text(b, r->device);
    cd_buf_putf(
        b, ", \"backend\": \"%s\", \"call\": \"int %s_run(void *const *argument)\",\n   \"why\": ",
        cd_emit_of(p, k)->name, r->name);
    put_text(b, r->why);
    cd_buf_puts(b, ",\n   \"inputs\": ");
    put_list(r, CD_EMIT_INPUT, b);
    cd_buf_puts(b, ", \"constants\": ");
    put_list(r, CD_EMIT_CONSTANT, b);
    cd_buf_puts(b, ", \"results\": ");
    put_list(r, CD_EMIT_RESULT, b);
    cd_buf_puts(b, ",\n   \"steps\": [");
    for (uint32_t s = 0; s < r->n_step; s++) {
        cd_buf_puts(b, s ? ",\n     " : "\n     ");
        put_step(r, &r->step[s], b);
    }
    cd_buf_puts(b, "]}");
}

static void put_boundary(const cd_emit_plan *p, const cd_offload_boundary *x, cd_buf *b) {
    cd_buf_putf(b, "{\"value\": %u, \"from\": ", x->buffer);
    put_text(b, p->a->plan->rules->device[x->from]);
    cd_buf_puts(b, ", \"to\": ");
    put_text(b, p->a->plan->rules->device[x->to]);
    cd_buf_putf(b, ", \"bytes\": %lld, \"packed\": %lld, \"convert\": \"", (long long)x->bytes,
                (long long)x->packed);
    cd_offload_edge_print(x->edge, b);
    cd_buf_puts(b, "\"}");
}

/* Offsets of inputs and constants are those of the files that main.c reads. */
cdmpp_status cd_emit_report(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err) {
    const cd_offload_net_plan *o = p->a->plan;
    cd_buf *b = cd_emit_add(out, "network", ".json");
    if (!b) return CD_FAIL(err, ENOMEM, "interface");
    cd_buf_puts(b, "{\"cdmpp_regions\": 1, \"network\": ");
    put_text(b, p->l->graph->name);
    cd_buf_puts(b, ",\n \"inputs\": [");
    put_outside(p, false, b);
    cd_buf_puts(b, "],\n \"constants\": [");
    put_outside(p, true, b);
    cd_buf_puts(b, "],\n \"results\": [");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) {
        cd_buf_puts(b, k ? ",\n  " : "\n  ");
        put_value(p, p->l->work->output[k], b);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "],\n \"regions\": [\n");
    for (uint32_t k = 0; k < p->n_region; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_region(p, k, b);
    }
    cd_buf_puts(b, "],\n \"boundary\": [");
    for (uint32_t k = 0; k < o->n_boundary; k++) {
        cd_buf_puts(b, k ? ",\n  " : "\n  ");
        put_boundary(p, &o->boundary[k], b);
    }
    cd_buf_puts(b, "]}\n");
    return CDMPP_OK;
}
