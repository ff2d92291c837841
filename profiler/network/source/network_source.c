/* Reads networks by name. For training the graph of an iteration takes the place of the network's,
 * and both lists of what is missing become one, so that callers need not know which step could not
 * take an operator. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "profiler/host/host.h"
#include "profiler/network/gradient/gradient.h"
#include "profiler/network/source/source.h"
#include "profiler/network/zoo/zoo.h"

/* Files of other frameworks that a user may give for a network: by their first bytes, where these
 * say it, else by the end of the name. Each has the one line that makes an ONNX file of it. Nothing
 * of them is read beyond the first kilobyte. */

enum { FIRST = 1024, MOST = 40 }; /* of a name in a message */

typedef struct {
    unsigned char p[FIRST];
    size_t n;
} bytes;

static bool begins(const bytes *b, size_t at, const char *magic, size_t n) {
    return b->n >= at + n && !memcmp(b->p + at, magic, n);
}
static bool holds(const bytes *b, const char *word) {
    return memmem(b->p, b->n, word, strlen(word)) != NULL;
}

static bool is_zip(const bytes *b) { return begins(b, 0, "PK\3\4", 4); }
static bool is_torch(const bytes *b) {
    return (is_zip(b) && (holds(b, "data.pkl") || holds(b, "constants.pkl"))) ||
           begins(b, 0, "\200\2\212\12\154\374\234\106\371\40\152\250\120\31", 14);
}
static bool is_exported(const bytes *b) {
    return is_zip(b) && (holds(b, "serialized_exported_program") || holds(b, "archive_format") ||
                         holds(b, "archive_version"));
}
static bool is_keras(const bytes *b) { return is_zip(b) && holds(b, "metadata.json"); }
static bool is_hdf5(const bytes *b) { return begins(b, 0, "\211HDF\r\n\32\n", 8); }
static bool is_tflite(const bytes *b) { return begins(b, 4, "TFL3", 4); }
static bool is_gguf(const bytes *b) { return begins(b, 0, "GGUF", 4); }
/* A length in 8 bytes, then JSON. */
static bool is_safetensors(const bytes *b) { return begins(b, 6, "\0\0{\"", 4); }
/* Nodes of a GraphDef come first; a SavedModel begins with version 1, where ONNX has 3 or more. */
static bool is_tensorflow(const bytes *b) {
    return begins(b, 0, "\12", 1) || begins(b, 0, "\10\1\22", 3);
}

typedef struct {
    const char *ends;           /* endings of the name, "|" between */
    bool (*is)(const bytes *b); /* by content; NULL: the name decides alone */
    bool both;                  /* the content alone says too little */
    const char *what, *how;     /* how: %s is the file without its ending, twice */
} form;

static const form forms[] = {
    {".pt2", is_exported, false, "a PyTorch program of torch.export",
     "in Python: torch.onnx.export(torch.export.load(\"%s.pt2\"), f=\"%s.onnx\", dynamo=True)"},
    {".pt|.pth|.ckpt", is_torch, false, "a PyTorch file",
     "in Python, with the module of %s: torch.onnx.export(module, (example_input,), \"%s.onnx\")"},
    {".keras", is_keras, false, "a Keras model",
     "in Python: keras.saving.load_model(\"%s.keras\").export(\"%s.onnx\", format=\"onnx\")"},
    {".h5|.hdf5", is_hdf5, false, "an HDF5 file, as of Keras",
     "python3 -m tf2onnx.convert --keras %s.h5 --output %s.onnx"},
    {".tflite", is_tflite, false, "a TensorFlow Lite model",
     "python3 -m tf2onnx.convert --tflite %s.tflite --output %s.onnx"},
    {".gguf", is_gguf, false, "weights of a language model (GGUF)", NULL},
    {".safetensors", is_safetensors, false, "weights (safetensors)", NULL},
    {".pb", is_tensorflow, true, "a TensorFlow graph",
     "python3 -m tf2onnx.convert --graphdef %s.pb --inputs NAME:0 --outputs NAME:0 --output "
     "%s.onnx"},
    {".mlmodel", NULL, false, "a Core ML model",
     "in Python: "
     "onnxmltools.utils.save_model(onnxmltools.convert_coreml(coremltools.utils.load_spec(\"%s."
     "mlmodel\")), \"%s.onnx\")"},
};

static const char *ending(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot : "";
}

static bool ends_so(const form *f, const char *path) {
    const char *end = ending(path);
    for (const char *p = f->ends; *end && p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (strcspn(p, "|") == strlen(end) && !strncasecmp(p, end, strlen(end))) return true;
    return false;
}

static bool is_form(const form *f, const char *path, const bytes *b) {
    const bool name = ends_so(f, path), content = f->is && f->is(b);
    return f->both ? name && content : content || (name && (!f->is || !b->n || is_zip(b)));
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* config.json of the same folder says what the weights are of. */
static cdmpp_status of_weights(const char *path, const form *f, cdmpp_err *err) {
    char config[100];
    struct stat st;
    const size_t folder = (size_t)(base_of(path) - path);
    const bool there = folder + 12 < sizeof config &&
                       snprintf(config, sizeof config, "%.*sconfig.json", (int)folder, path) > 0 &&
                       !stat(config, &st);
    return CD_FAIL(err, EUSAGE,
                   "%s, without the network: give the config.json %s: cdmpp-replay %s --gpu h100",
                   f->what, there ? "beside them" : "that is published with them",
                   there ? config : "config.json");
}

static cdmpp_status of_network(const char *path, const form *f, cdmpp_err *err) {
    const char *base = base_of(path);
    const size_t n = strlen(base) - strlen(ending(base));
    cd_buf how = {0};
    for (const char *p = f->how; *p; p++) {
        const bool name = p[0] == '%' && p[1] == 's';
        cd_buf_put(&how, name ? base : p, name ? n < MOST ? n : MOST : 1);
        p += name;
    }
    cd_buf_put(&how, "", 1);
    const cdmpp_status st = CD_FAIL(err, EUSAGE, "%s; networks are read as ONNX: %s", f->what,
                                    how.oom ? "export it" : how.p);
    cd_buf_free(&how);
    return st;
}

cdmpp_status cd_network_source_foreign(const char *path, cdmpp_err *err) {
    bytes b = {.n = 0};
    struct stat st;
    const bool missing = stat(path, &st) != 0;
    FILE *f = missing || S_ISDIR(st.st_mode) ? NULL : fopen(path, "rb");
    if (f) {
        b.n = fread(b.p, 1, sizeof b.p, f);
        (void)fclose(f);
    }
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (!is_form(&forms[k], path, &b)) continue;
        cdmpp_status bad;
        if (missing) bad = CD_FAIL(err, EIO, "cannot open: %s", strerror(ENOENT));
        else bad = (forms[k].how ? of_network : of_weights)(path, &forms[k], err);
        return cd_err_at(err, bad, path, 0);
    }
    return CDMPP_OK;
}

/* Networks at an address: fetched once by curl, or wget where there is no curl, and kept in the
 * user's cache. An archive has one ONNX file among others. */

#define LOCAL   "file://"
#define LIMIT_S 1800 /* of one transfer */
enum { PATH = 1024 };

/* http://, https:// or file://? */
static bool network_source_is_address(const char *name) {
    return !strncmp(name, "http://", 7) || !strncmp(name, "https://", 8) ||
           !strncmp(name, LOCAL, sizeof LOCAL - 1);
}

/* Length of an address without "?..." and "#...". */
static size_t plain_length(const char *address) { return strcspn(address, "?#"); }

static bool ends_in(const char *address, const char *end) {
    const size_t n = plain_length(address), m = strlen(end);
    return n > m && !strncmp(address + n - m, end, m);
}

static bool is_archive(const char *address) {
    return ends_in(address, ".tar.gz") || ends_in(address, ".tgz");
}

/* The folder and those above it that are missing. */
static cdmpp_status make_folders(char *path, cdmpp_err *err) {
    for (char *s = path + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        const cdmpp_status st = cd_file_make_folder(path, err);
        *s = '/';
        if (st) return st;
    }
    return cd_file_make_folder(path, err);
}

/* The last name of the address behind a digest of all of it: networks of one name from two places
 * are two files. */
static cdmpp_status place_of(const char *address, char *to, size_t n, cdmpp_err *err) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *last = address;
    const bool cache = xdg && xdg[0] == '/';
    char hex[65], dir[PATH];
    cd_sha256 s;
    size_t end = plain_length(address);
    for (size_t k = 0; k < end; k++)
        if (address[k] == '/') last = address + k + 1;
    end -= (size_t)(last - address);
    if (ends_in(address, ".onnx")) end -= 5;
    cd_sha256_init(&s);
    cd_sha256_add(&s, address, strlen(address));
    cd_sha256_hex(&s, hex);
    if (!cache && !(home && home[0]))
        return CD_FAIL(err, EIO,
                       "nowhere to keep what is fetched: neither XDG_CACHE_HOME nor HOME is set");
    const int m = snprintf(dir, sizeof dir, "%s%s/cdmpp/networks/%.16s", cache ? xdg : home,
                           cache ? "" : "/.cache", hex);
    if (m < 0 || (size_t)m >= sizeof dir ||
        (size_t)snprintf(to, n, "%s/%.*s.onnx", dir, (int)(end < 80 ? end : 80), last) >= n)
        return CD_FAIL(err, EIO, "%s: the path in the cache is too long", address);
    return make_folders(dir, err);
}

/* Runs it; *missing: there is no such program, and nothing was done. */
static cdmpp_status run(const char *const *argv, const char *address, bool *missing,
                        cdmpp_err *err) {
    char say[64];
    cd_subprocess j = {.argv = argv, .limit_s = LIMIT_S};
    cdmpp_status st = cd_subprocess_run(&j, 1, 1, NULL, err);
    *missing = !st && j.end == CD_SPAWN_NOT_BEGUN && j.code == ENOENT;
    if (!st && !*missing && (j.end != CD_SPAWN_EXITED || j.code != 0)) {
        const size_t n = j.text.p ? strcspn(j.text.p, "\n") : 0;
        st = CD_FAIL(err, EIO, "%.200s: %s: %s%s%.*s", address, argv[0],
                     cd_subprocess_say(&j, say, sizeof say), n ? ": " : "",
                     (int)(n < 160 ? n : 160), n ? j.text.p : "");
    }
    cd_buf_free(&j.text);
    return st;
}

static cdmpp_status get(const char *address, const char *to, cdmpp_err *err) {
    const char *const curl[] = {"curl", "-fsSL", "--proto", "=http,https", "-o", to, address, NULL};
    const char *const wget[] = {"wget", "-nv", "-O", to, address, NULL};
    bool missing;
    CD_TRY(run(curl, address, &missing, err));
    if (missing) CD_TRY(run(wget, address, &missing, err));
    return missing ? CD_FAIL(err, EBACKEND,
                             "%s: it takes curl or wget to fetch it, and neither is here", address)
                   : CDMPP_OK;
}

/* The one ONNX file of an archive. */
static cdmpp_status unpack(const char *address, const char *archive, const char *to,
                           cdmpp_err *err) {
    static const char script[] =
        "n=$(tar -tzf \"$1\" | grep -c '[.]onnx$'); [ \"$n\" = 1 ] || { echo \"$n files *.onnx in "
        "the archive, expected one\"; exit 1; }; "
        "tar -xzOf \"$1\" --wildcards --no-anchored '*.onnx' >\"$2\"";
    const char *const argv[] = {"sh", "-c", script, "sh", archive, to, NULL};
    bool missing;
    CD_TRY(run(argv, address, &missing, err));
    return missing ? CD_FAIL(err, EBACKEND, "sh is not here") : CDMPP_OK;
}

/* What is behind the address at `path`, whole or not at all. */
static cdmpp_status bring(const char *address, const char *path, cdmpp_err *err) {
    const bool archive = is_archive(address), local = !strncmp(address, LOCAL, sizeof LOCAL - 1);
    char *got = NULL, *made = NULL;
    cdmpp_status st = cd_file_temp(path, &made, err);
    if (!st && archive && !local) st = cd_file_temp(path, &got, err);
    if (!st && !local) st = get(address, archive ? got : made, err);
    if (!st && archive) st = unpack(address, local ? address + sizeof LOCAL - 1 : got, made, err);
    cd_file_discard(got);
    if (!st) return cd_file_publish(made, path, err);
    cd_file_discard(made);
    return st;
}

cdmpp_status cd_network_source_fetch(cd_arena *a, const char *address, const char **path,
                                     cdmpp_err *err) {
    char to[PATH];
    if (!strncmp(address, LOCAL, sizeof LOCAL - 1) && !is_archive(address))
        return (*path = address + sizeof LOCAL - 1, CDMPP_OK);
    CD_TRY(place_of(address, to, sizeof to, err));
    if (access(to, R_OK) != 0) CD_TRY(bring(address, to, err));
    *path = cd_str_dup(a, (cd_str){to, strlen(to)});
    return *path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
}

cdmpp_status cd_network_source_onnx(const char *name, const cd_onnx_options *o, cd_graph **g,
                                    const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    cd_arena a = {0};
    const char *path = name;
    cdmpp_status st =
        network_source_is_address(name) ? cd_network_source_fetch(&a, name, &path, err) : CDMPP_OK;
    if (!st) st = cd_network_source_foreign(path, err);
    if (!st) st = cd_onnx_read(path, o, g, miss, n_miss, err);
    cd_arena_free(&a);
    return st;
}

bool cd_network_source_is_file(const char *name) {
    struct stat st;
    const size_t n = strlen(name);
    if (stat(name, &st) == 0) return !S_ISDIR(st.st_mode);
    if (strchr(name, '@') && cd_zoo_find(name)) return false; /* gcn@FILE */
    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".onnx"));
}

/* What OpBench took from the libraries of transformers and of recurrent networks. */
static bool of_transformers(const cd_zoo_entry *e) {
    return !strcmp(e->family, "transformer") || !strcmp(e->family, "rnn") ||
           !strcmp(e->name, "nasnet-large") || !strcmp(e->name, "dpn-68");
}

cdmpp_status cd_network_source_kind(int said, const char *name, int *kind, cdmpp_err *err) {
    const bool remote = said == CD_NETWORK_SOURCE_URL || said == CD_NETWORK_SOURCE_REMOTE,
               file = name && cd_network_source_is_file(name);
    /* of an unknown name the zoo says what is near */
    const cd_zoo_entry *e = name && !file ? cd_zoo_find(name) : NULL;
    *kind = said == CD_NETWORK_SOURCE_ONNX || remote || file ? CD_NETWORK_SOURCE_ONNX
                                                             : CD_NETWORK_SOURCE_ZOO;
    if (remote && name && !network_source_is_address(name))
        return CD_FAIL(err, EUSAGE,
                       "expected an address (http://, https://, file://), found '%.100s'", name);
    if (said == CD_NETWORK_SOURCE_SIMPLE && (file || (e && strcmp(e->family, "operator") != 0)))
        return CD_FAIL(err, EUSAGE,
                       "'%.100s' is no single operator (--list-networks); source %s has it", name,
                       file ? "onnx" : "zoo");
    if (said == CD_NETWORK_SOURCE_TRANSFORMERS && (file || (e && !of_transformers(e))))
        return CD_FAIL(
            err, EUSAGE,
            "'%.100s' is no transformer and not recurrent (--list-networks); source %s has it",
            name, file ? "onnx" : "zoo");
    return CDMPP_OK;
}

static cdmpp_status keep(cd_arena *a, const char **s, cdmpp_err *err) {
    *s = cd_str_dup(a, (cd_str){*s, strlen(*s)});
    return *s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
}

/* The iteration in place of the network. The misses' texts lived in the old graph's arena: they are
 * copied before it is freed. */
static cdmpp_status iteration(cd_graph **g, const cd_onnx_miss **miss, uint32_t *n,
                              cdmpp_err *err) {
    cd_gradient t;
    CD_TRY(cd_autodiff(*g, NULL, &t, err));
    cd_arena *a = &t.graph->arena;
    cd_onnx_miss *all = CD_NEWN(a, cd_onnx_miss, (size_t)*n + t.n_missing + 1);
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t k = 0; !st && k < *n; k++) {
        const char **part[] = {&all[k].node, &all[k].op, &all[k].domain, &all[k].reason};
        all[k] = (*miss)[k];
        for (int i = 0; !st && i < 4; i++) st = keep(a, part[i], err);
    }
    for (uint32_t k = 0; !st && k < t.n_missing; k++)
        all[*n + k] = (cd_onnx_miss){.node = t.missing[k].name,
                                     .op = t.missing[k].op,
                                     .domain = CD_GRADIENT_DOMAIN,
                                     .reason = t.missing[k].reason};
    if (!st) st = cd_graph_take_notes(t.graph, *g, err);
    if (st) {
        cd_gradient_free(&t);
        return st;
    }
    cd_graph_free(*g);
    *g = t.graph;
    *miss = all;
    *n += t.n_missing;
    return CDMPP_OK;
}

static cdmpp_status read_graph(const cd_network_source *s, cd_graph **g, const cd_onnx_miss **miss,
                               uint32_t *n_miss, cdmpp_err *err) {
    const cd_onnx_options onnx = {.batch = s->batch,
                                  .dim = s->dim,
                                  .n_dim = s->n_dim,
                                  .input = s->input,
                                  .n_input = s->n_input,
                                  .contents = s->contents};
    const cd_zoo_options zoo = {.batch = s->batch, .size = s->size};
    *miss = NULL;
    *n_miss = 0;
    if (s->kind == CD_NETWORK_SOURCE_ONNX)
        return cd_network_source_onnx(s->name, &onnx, g, miss, n_miss, err);
    return cd_zoo_build(s->name, &zoo, g, err);
}

cdmpp_status cd_network_source_read(const cd_network_source *s, cd_graph **g,
                                    const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    CD_TRY(read_graph(s, g, miss, n_miss, err));
    const cdmpp_status st = s->training ? iteration(g, miss, n_miss, err) : CDMPP_OK;
    if (!st) return st;
    cd_graph_free(*g);
    *g = NULL;
    return st;
}

void cd_network_source_say(const cd_graph *g, cd_log *log) {
    for (uint32_t k = 0; k < g->n_note; k++)
        cd_log_put(log, CD_LOG_WARNING, "%.80s: %s", g->name, g->note[k]);
    if (g->n_more_note)
        cd_log_put(log, CD_LOG_WARNING, "%.80s: %u more of this kind", g->name, g->n_more_note);
}

cdmpp_status cd_network_source_missing(cd_graph *g, const cd_onnx_miss *miss, uint32_t n,
                                       cd_workload_options *w, cdmpp_err *err) {
    cd_workload_unsupported *list = CD_NEWN(&g->arena, cd_workload_unsupported, n + 1);
    if (!list) return CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t i = 0; i < n; i++)
        list[i] = (cd_workload_unsupported){miss[i].op, miss[i].node, miss[i].reason};
    w->missing = list;
    w->n_missing = n;
    return CDMPP_OK;
}

void cd_network_source_put_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n) {
    cd_json_writer w = {.out = b};
    cd_json_write_key(&w, "unsupported");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < n; i++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", miss[i].node);
        cd_json_write_member_str(&w, "op", miss[i].op);
        cd_json_write_member_str(&w, "domain", miss[i].domain);
        cd_json_write_member_str(&w, "reason", miss[i].reason);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
}
