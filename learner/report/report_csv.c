/* One line a program (RFC 4180): what every plot was made from. */
#include "learner/report/report.h"

/* Quotes only where CSV needs them; quotes inside are doubled. */
static void field(cd_buf *out, const char *s) {
    if (!s[strcspn(s, ",\"\r\n")]) {
        cd_buf_puts(out, s);
        return;
    }
    cd_buf_puts(out, "\"");
    for (;;) {
        const size_t n = strcspn(s, "\"");
        cd_buf_put(out, s, n);
        if (!s[n]) break;
        cd_buf_puts(out, "\"\"");
        s += n + 1;
    }
    cd_buf_puts(out, "\"");
}

/* A column that the model does not fill stays empty. */
static void number(cd_buf *out, const double *v, size_t i) {
    if (v) cd_buf_putf(out, ",%.9g", v[i]);
    else cd_buf_puts(out, ",");
}

/* Where the program was read from, as cdmpp-extract wrote it. */
static cdmpp_status record(cd_buf *out, const cd_report *r, const cd_report_part *p, size_t i,
                           cdmpp_err *err) {
    if (!p->source_file || !p->source_line) {
        cd_buf_puts(out, ",");
        return CDMPP_OK;
    }
    if (p->source_file[i] >= r->n_source)
        return CD_FAIL(err, ERANGE, "program %zu: source %u", i, (unsigned)p->source_file[i]);
    field(out, r->source_name[p->source_file[i]]);
    cd_buf_putf(out, ",%llu", (unsigned long long)p->source_line[i]);
    return CDMPP_OK;
}

/* The numbers of tasks and devices index the names, so they are checked. */
cdmpp_status cd_report_write_csv(cd_buf *out, const cd_report *r, cdmpp_err *err) {
    cd_buf_puts(out, "part,task,device,measured_s,predicted_s,low_s,high_s,rel_std,out_of_range,"
                     "error,file,line,order_s\n");
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const cd_report_part *p = &r->part[k];
        for (size_t i = 0; i < p->n && !out->oom; i++) {
            if (p->task[i] >= r->n_task || p->device[i] >= r->n_device)
                return CD_FAIL(err, ERANGE, "%s program %zu: task %u, device %u",
                               cd_split_part_name((cd_split_part)k), i, (unsigned)p->task[i],
                               (unsigned)p->device[i]);
            cd_buf_puts(out, cd_split_part_name((cd_split_part)k));
            cd_buf_puts(out, ",");
            field(out, r->task_name[p->task[i]]);
            cd_buf_puts(out, ",");
            field(out, r->device_name[p->device[i]]);
            number(out, p->measured_s, i);
            number(out, p->predicted_s, i);
            number(out, p->low_s, i);
            number(out, p->high_s, i);
            number(out, p->rel_std, i);
            cd_buf_puts(out, !p->out_of_range ? "," : p->out_of_range[i] ? ",1" : ",0");
            cd_buf_putf(out, ",%.6g,", p->predicted_s[i] / p->measured_s[i] - 1);
            CD_TRY(record(out, r, p, i, err));
            number(out, p->order_s, i);
            cd_buf_puts(out, "\n");
        }
    }
    return out->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}
