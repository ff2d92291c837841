/* Files of other frameworks that a user may give for a network: by their first bytes, where these
 * say it, else by the end of the name. Each has the one line that makes an ONNX file of it. Nothing
 * of them is read beyond the first kilobyte. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/network/source/source.h"

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
