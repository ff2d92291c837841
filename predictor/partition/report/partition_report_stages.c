/* ---- told ---- */
static void put_stage(const cd_partition *p, const cd_partition_stage *k, const cd_stage_step *s, cd_buf *b) {
    for (uint32_t g = 0; g < s->n_group; g++) {
        cd_buf_puts(b, g ? " | " : "");
        for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++) cd_buf_putf(b, "%s%.40s", j > s->first[g] ? " > " : "", p->net.op[k->op[s->op[j]]].name);
    }
}

void cd_partition_print_stages(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, "\nstages on ");
    cd_buf_putf(b, "%u units like %s: ", p->machine.n, p->machine.device[0].name);
    cd_units_put_seconds_wide(b, p->stages_s);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, p->alone_s);
    cd_buf_putf(b, " (%.3fx); searched in %.3f s%s\n", p->alone_s / p->stages_s, p->stage_search_s,
                p->machine.contention.peak_bytes_per_s > 0 ? "" : "; nobody disturbs the other: no contention was measured");
    if (p->staged.done) cd_partition_print_stage_run(p, b);
    for (uint32_t k = 0; k < p->n_stage; k++)
        for (uint32_t i = 0; i < p->stage[k].plan.n_stage; i++) {
            const cd_stage_step *s = &p->stage[k].plan.stage[i];
            if (s->n_group < 2 && !p->o->explain) continue;
            cd_buf_putf(b, "  block %u stage %u  ", k, i);
            cd_units_put_seconds_wide(b, s->seconds);
            cd_buf_puts(b, "  ");
            put_stage(p, &p->stage[k], s, b);
            cd_buf_puts(b, "\n");
        }
}

void cd_partition_json_stages(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, ",\"stages\":{");
    cd_partition_put(b, "seconds", p->stages_s);
    cd_partition_put(b, "alone_s", p->alone_s);
    cd_partition_put(b, "search_s", p->stage_search_s);
    cd_buf_puts(b, ",\"stage\":[");
    const char *sep = "";
    for (uint32_t k = 0; k < p->n_stage; k++)
        for (uint32_t i = 0; i < p->stage[k].plan.n_stage; i++) {
            const cd_stage_step *s = &p->stage[k].plan.stage[i];
            const cd_str kind = cd_enum_names_at(CD_STAGE_KINDS, (int)s->kind);
            cd_buf_putf(b, "%s{\"block\":%u,\"kind\":\"%.*s\"", sep, k, (int)kind.n, kind.p);
            cd_partition_put(b, "seconds", s->seconds);
            cd_buf_puts(b, ",\"groups\":[");
            for (uint32_t g = 0; g < s->n_group; g++) {
                cd_buf_puts(b, g ? ",[" : "[");
                for (uint32_t j = s->first[g]; j < s->first[g + 1]; j++) cd_buf_putf(b, "%s%u", j > s->first[g] ? "," : "", p->stage[k].op[s->op[j]]);
                cd_buf_puts(b, "]");
            }
            cd_buf_puts(b, "]}");
            sep = ",";
        }
    cd_buf_puts(b, "]");
    if (p->staged.done) cd_partition_json_stage_run(p, b);
    cd_buf_puts(b, "}");
}
/* ---- told ---- */

void cd_partition_print_stage_run(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, "  run here: stages ");
    cd_units_put_seconds_wide(b, p->staged.seconds);
    cd_buf_puts(b, ", one operator after the other ");
    cd_units_put_seconds_wide(b, p->staged.alone_s);
    cd_buf_putf(b, " (%.3fx); %u of %u blocks, one by one; values: ", p->staged.alone_s / p->staged.seconds, p->staged.n, p->n_stage);
    if (p->staged.differ) cd_buf_putf(b, "%u operators differ\n", p->staged.differ);
    else cd_buf_puts(b, "equal\n");
}

void cd_partition_json_stage_run(const cd_partition *p, cd_buf *b) {
    cd_buf_puts(b, ",\"run\":{");
    cd_partition_put(b, "measured_s", p->staged.seconds);
    cd_partition_put(b, "alone_measured_s", p->staged.alone_s);
    cd_partition_put(b, "predicted_s", p->staged.predicted_s);
    cd_buf_putf(b, ",\"blocks\":%u,\"blocks_run\":%u,\"operators_that_differ\":%u,\"block\":[", p->n_stage, p->staged.n, p->staged.differ);
    for (uint32_t k = 0; k < p->n_stage; k++) {
        cd_buf_putf(b, "%s{\"block\":%u", k ? "," : "", k);
        cd_partition_put(b, "predicted_s", p->stage[k].plan.total_s);
        cd_partition_put(b, "measured_s", p->stage[k].measured_s);
        cd_partition_put(b, "alone_measured_s", p->stage[k].alone_measured_s);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}
