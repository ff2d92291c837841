/* Files of other frameworks: by their first bytes whatever they are called, by their names where
 * they are not there. */
#include "check.h"
#include "tmp.h"

#include "profiler/network/source/source.h"

#define B(s) s, sizeof s - 1
static const struct {
    const char *name, *bytes;
    size_t n;
    const char *says; /* NULL: it is none */
} known[] = {
    {"net.bin", B("PK\3\4\24\0\0\0\0\0\0\0archive/data.pkl"),
     "torch.onnx.export(module, (example_input,), \"net.onnx\")"},
    {"old.bin", B("\200\2\212\12\154\374\234\106\371\40\152\250\120\31."), "torch.onnx.export"},
    {"net.pt", B("PK\3\4"), "torch.onnx.export(module"},
    {"net.pt2", B("PK\3\4\24\0\0\0archive_format"), "torch.export.load(\"net.pt2\")"},
    {"net.keras", B("PK\3\4\24\0\0\0metadata.json"),
     "keras.saving.load_model(\"net.keras\").export(\"net.onnx\""},
    {"weights", B("\211HDF\r\n\32\n"), "tf2onnx.convert --keras weights.h5"},
    {"lite", B("\34\0\0\0TFL3"), "tf2onnx.convert --tflite lite.tflite --output lite.onnx"},
    {"llm", B("GGUF\3\0\0\0"),
     "config.json that is published with them: cdmpp-replay config.json --gpu h100"},
    {"m.safetensors", B("\20\0\0\0\0\0\0\0{\"a\":1}"), "weights (safetensors)"},
    {"frozen.pb", B("\12\20\12\1x"), "tf2onnx.convert --graphdef frozen.pb"},
    {"m.mlmodel", B("\10\1"), "onnxmltools.convert_coreml"},
    {"fine.pb", B("\10\7\22\7pytorch"), NULL}, /* ONNX, whatever it is called */
    {"fine.onnx", B("\10\7\22\7pytorch"), NULL},
    {"fine.pt", B("\10\7\22\7pytorch"), NULL},
    {"empty.onnx", B(""), NULL},
};

TEST(contents) {
    tmp_dir d = tmp_make();
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        cdmpp_err err = {0};
        const cdmpp_status st =
            cd_network_source_foreign(tmp_put(&d, known[k].name, known[k].bytes, known[k].n), &err);
        if (known[k].says && !strstr(err.msg, known[k].says))
            print_error("%s: %s\n", known[k].name, err.msg);
        assert_int_equal(st, known[k].says ? CDMPP_EUSAGE : CDMPP_OK);
        assert_true(!known[k].says ||
                    (strstr(err.msg, known[k].says) && strstr(err.path, known[k].name)));
    }
    tmp_remove(&d);
}

TEST(beside) {
    tmp_dir d = tmp_make();
    char file[256], want[300];
    cdmpp_err err = {0};
    snprintf(file, sizeof file, "%s", tmp_put(&d, "m.gguf", "GGUF", 4));
    snprintf(want, sizeof want, "beside them: cdmpp-replay %s --gpu h100",
             tmp_put(&d, "config.json", "{}", 2));
    assert_int_equal(cd_network_source_foreign(file, &err), CDMPP_EUSAGE);
    assert_true(strstr(err.msg, want));
    tmp_remove(&d);
}

TEST(not_there) {
    cdmpp_err err = {0};
    assert_int_equal(cd_network_source_foreign("/nosuch/a.TFLITE", &err), CDMPP_EIO);
    assert_string_equal(err.msg, "cannot open: No such file or directory");
    assert_int_equal(cd_network_source_foreign("/nosuch/a.onnx", &err), CDMPP_OK);
    assert_int_equal(cd_network_source_foreign("resnet-50", &err), CDMPP_OK);
}

TESTS(NULL, NULL, contents, beside, not_there)
