/* Reads an ONNX file: opens it, strips large contents, lets protobuf-c unpack the rest, and walks
 * the model into a graph. The messages live in a scratch arena that is freed when the graph stands;
 * what the graph keeps is copied. */
#include "profiler/network/onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/network/onnx/onnx_internal.h"

enum { OPSET_LOW = 7, OPSET_KNOWN = 28 };

static cdmpp_status unpack(cd_arena *a, const cd_buf *b, const CdOnnx__ModelProto **out,
                           cdmpp_err *err) {
    cd_onnx_quota q;
    ProtobufCAllocator alloc = cd_onnx_quota_begin(&q, a, b->n);
    *out = cd_onnx__model_proto__unpack(&alloc, b->n, (const uint8_t *)(b->p ? b->p : ""));
    return *out ? CDMPP_OK : cd_onnx_quota_why(&q, "no ONNX model, or a damaged one", err);
}

static cdmpp_status check_model(const CdOnnx__ModelProto *m, cd_graph *g, cdmpp_err *err) {
    if (!m->graph) return CD_FAIL(err, ESCHEMA, "the model has no graph");
    const int64_t opset = cd_onnx_opset(m->opset_import, m->n_opset_import);
    if (opset < OPSET_LOW || opset > INT32_MAX)
        return CD_FAIL(err, EUNSUPPORTED, "opset %lld: expected %d or more", (long long)opset,
                       OPSET_LOW);
    g->opset = (int)opset;
    if (opset <= OPSET_KNOWN) return CDMPP_OK;
    return cd_graph_note(g, err,
                         "opset %lld: the newest that is known here is %d, and operators are taken "
                         "for what they are there",
                         (long long)opset, OPSET_KNOWN);
}

/* The outputs of the file, where they are known. Then the operands of unsupported nodes: without
 * that, nothing would read them, and they would not be part of the network's time. */
static cdmpp_status results(cd_onnx_reader *r, const cd_onnx_scope *s, cdmpp_err *err) {
    const CdOnnx__GraphProto *g = r->model->graph;
    for (size_t i = 0; i < g->n_output; i++) {
        const uint32_t *t = cd_onnx_look_up(s, cd_onnx_text(g->output[i]->name));
        if (!t)
            return CD_FAIL(err, ESCHEMA, "result \"%s\" is not defined anywhere",
                           cd_onnx_text(g->output[i]->name));
        /* else behind an unsupported node */
        if (*t < r->g->n_tensor) CD_TRY(cd_graph_result(r->g, *t, err));
    }
    /* else what only an unsupported node reads would not be made */
    for (uint32_t k = 0; k < r->n_kept; k++) {
        const cd_graph_tensor *t = &r->g->tensor[r->kept[k]];
        if (!t->is_output && !t->is_input && !t->is_weight && !t->value && !t->fvalue)
            CD_TRY(cd_graph_result(r->g, r->kept[k], err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_graph(cd_onnx_reader *r, cdmpp_err *err) {
    const CdOnnx__GraphProto *g = r->model->graph;
    cd_onnx_scope s = {0};
    r->used = CD_NEWN(r->a, bool, (size_t)r->o->n_dim + 1);
    if (!r->used) return CD_FAIL(err, ENOMEM, "options");
    CD_TRY(cd_onnx_index_functions(r, err));
    CD_TRY(cd_onnx_index_shapes(r, &s, g, err));
    CD_TRY(cd_onnx_inputs(r, &s, g, err));
    CD_TRY(cd_onnx_nodes(r, &s, g->node, g->n_node, err));
    for (uint32_t i = 0; i < r->o->n_dim; i++)
        if (!r->used[i])
            return CD_FAIL(err, EUSAGE,
                           "\"%s\" is for no dimension of an input, no If, no Loop and no result "
                           "whose size depends on the data",
                           r->o->dim[i]);
    return results(r, &s, err);
}

static cdmpp_status parse(cd_onnx_reader *r, const void *data, size_t n, cdmpp_err *err) {
    cd_buf slim = {0};
    cdmpp_status st = cd_onnx_strip(data, n, r->o->contents, &slim, err);
    if (!st) st = unpack(r->a, &slim, &r->model, err);
    cd_buf_free(&slim);
    if (!st) st = check_model(r->model, r->g, err);
    return st ? st : read_graph(r, err);
}

/* On success the misses are in the graph's arena, so that they live as long as it does. */
cdmpp_status cd_onnx_parse(const void *data, size_t n, const char *name, const char *folder,
                           const cd_onnx_options *o, cd_graph **out, const cd_onnx_miss **miss,
                           uint32_t *n_miss, cdmpp_err *err) {
    static const cd_onnx_options none = {0};
    cd_arena scratch = {0};
    cd_onnx_reader r = {.o = o ? o : &none, .folder = folder, .a = &scratch};
    *out = NULL;
    if (r.o->batch < 0 || r.o->batch > (int64_t)1 << 32)
        return CD_FAIL(err, EUSAGE, "a batch of %lld", (long long)r.o->batch);
    CD_TRY(cd_graph_new(name, &r.g, err));
    r.g->contents = r.o->contents;
    const cdmpp_status st = parse(&r, data, n, err);
    cd_arena_free(&scratch);
    if (st) {
        cd_graph_free(r.g);
        return st;
    }
    *out = r.g;
    *miss = r.miss;
    *n_miss = r.n_miss;
    return CDMPP_OK;
}

/* Name of a network: the file's, without folder and ending; its folder in front of the NUL. */
static void split_path(char *path, const char **folder, const char **name) {
    char *slash = strrchr(path, '/'), *dot;
    *folder = slash ? path : ".";
    *name = slash ? slash + 1 : path;
    if (slash) *slash = 0;
    if (slash == path) *folder = "/";
    dot = strrchr(slash ? slash + 1 : path, '.');
    if (dot) *dot = 0;
}

static cdmpp_status read_fd(int fd, char *path, const cd_onnx_options *o, cd_graph **out,
                            const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    struct stat st;
    const char *folder, *name;
    if (fstat(fd, &st)) return CD_FAIL(err, EIO, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode)) return CD_FAIL(err, EIO, "expected a file");
    if (st.st_size == 0) return CD_FAIL(err, EPARSE, "the file is empty");
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return CD_FAIL(err, EIO, "%s", strerror(errno));
    split_path(path, &folder, &name);
    const cdmpp_status s =
        cd_onnx_parse(p, (size_t)st.st_size, name, folder, o, out, miss, n_miss, err);
    munmap(p, (size_t)st.st_size);
    return s;
}

/* The path is copied: split_path cuts it into folder and name. */
cdmpp_status cd_onnx_read(const char *path, const cd_onnx_options *o, cd_graph **out,
                          const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cd_err_raise(err, CDMPP_EIO, __FILE__, __LINE__, "%s", strerror(errno));
        return cd_err_at(err, CDMPP_EIO, path, 0);
    }
    char *copy = cd_mem_text(path);
    cdmpp_status st = CDMPP_OK;
    if (!copy) st = CD_FAIL(err, ENOMEM, "a path");
    else st = read_fd(fd, copy, o, out, miss, n_miss, err);
    cd_mem_free(copy);
    close(fd);
    return cd_err_at(err, st, path, 0);
}
