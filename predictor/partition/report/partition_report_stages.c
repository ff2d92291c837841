/* Stages of operators side by side: the sum over blocks, then those stages in which something does run side by side. */
#include "predictor/partition/report/report_internal.h"

/* "conv1 > conv2 | conv3": groups, and operators in a group one behind the other. */
static void put_stage(const cd_partition *p, const cd_partition_stage *k, const cd_stage_step *s, cd_buf *b) {
    for (uint32_t g = 0; g < s->n_group; g++) {
        cd_buf_puts(b, g ? " | " : "");
        for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++) cd_buf_putf(b, "%s%.40s", j > s->first[g] ? " > " : "", p->net.op[k->op[s->op[j]]].name);
    }
}

static void put_run(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, "  run here: stages ");
    cd_units_put_seconds_wide(b, p->staged.seconds);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, p->staged.alone_s);
    cd_buf_putf(b, " (%.3fx); %u of %u blocks, one by one; values: ", p->staged.alone_s / p->staged.seconds, p->staged.n, p->n_stage);
    if (p->staged.differ) cd_buf_putf(b, "%u operators differ\n", p->staged.differ);
    else cd_buf_puts(b, "equal\n");
}

/* Stages with a single group say nothing new: they are left out unless all is explained. */
void cd_partition_report_stages(const cd_partition *p, bool explain, cd_buf *b) {
    cd_buf_puts(b, "\nstages on ");
    cd_buf_putf(b, "%u units like %s: ", p->machine.n, p->machine.device[0].name);
    cd_units_put_seconds_wide(b, p->stages_s);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, p->alone_s);
    cd_buf_putf(b, " (%.3fx); searched in %.3f s%s\n", p->alone_s / p->stages_s, p->stage_search_s,
                p->machine.contention.peak_bytes_per_s > 0 ? "" : "; nobody disturbs the other: no contention was measured");
    if (p->staged.done) put_run(p, b);
    for (uint32_t k = 0; k < p->n_stage; k++)
        for (uint32_t i = 0; i < p->stage[k].plan.n_stage; i++) {
            const cd_stage_step *s = &p->stage[k].plan.stage[i];
            if (s->n_group < 2 && !explain) continue;
            cd_buf_putf(b, "  block %u stage %u  ", k, i);
            cd_units_put_seconds_wide(b, s->seconds);
            cd_buf_puts(b, "  ");
            put_stage(p, &p->stage[k], s, b);
            cd_buf_puts(b, "\n");
        }
}

/* ---- JSON ---- */

/* Operators have their numbers in the network, not those in the block. */
static void json_step(const cd_partition *p, uint32_t block, const cd_stage_step *s, cd_json_writer *w) {
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "block", block);
    cd_json_write_member_str(w, "kind", "concurrent"); /* every stage is: groups that run side by side */
    cd_json_write_member_real(w, "seconds", s->seconds);
    cd_json_write_key(w, "groups"), cd_json_write_open(w, '[');
    for (uint32_t g = 0; g < s->n_group; g++) {
        cd_json_write_open(w, '[');
        for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++) cd_json_write_int(w, p->stage[block].op[s->op[j]]);
        cd_json_write_close(w, ']');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

/* A block that was not run has null for its measured times. */
static void json_run(const cd_partition *p, cd_json_writer *w) {
    cd_json_write_key(w, "run"), cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "measured_s", p->staged.seconds);
    cd_json_write_member_real(w, "alone_measured_s", p->staged.alone_s);
    cd_json_write_member_real(w, "predicted_s", p->staged.predicted_s);
    cd_json_write_member_int(w, "blocks", p->n_stage);
    cd_json_write_member_int(w, "blocks_run", p->staged.n);
    cd_json_write_member_int(w, "operators_that_differ", p->staged.differ);
    cd_json_write_key(w, "block"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < p->n_stage; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_int(w, "block", k);
        cd_json_write_member_real(w, "predicted_s", p->stage[k].plan.total_s);
        cd_json_write_member_real(w, "measured_s", p->stage[k].measured_s);
        cd_json_write_member_real(w, "alone_measured_s", p->stage[k].alone_measured_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

void cd_partition_report_stages_json(const cd_partition *p, cd_json_writer *w) {
    cd_json_write_key(w, "stages"), cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "seconds", p->stages_s);
    cd_json_write_member_real(w, "alone_s", p->alone_s);
    cd_json_write_member_real(w, "search_s", p->stage_search_s);
    cd_json_write_key(w, "stage"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < p->n_stage; k++)
        for (uint32_t i = 0; i < p->stage[k].plan.n_stage; i++) json_step(p, k, &p->stage[k].plan.stage[i], w);
    cd_json_write_close(w, ']');
    if (p->staged.done) json_run(p, w);
    cd_json_write_close(w, '}');
}
