# splits that contradict themselves or the data: said before training, with what was meant
. "$T/lib.sh"
cp "$ROOT/configs/quickstart.yaml" c.yaml
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
try() { cdmpp-train c.yaml --quiet --set data.files=a.h5 "$@"; echo "status $?"; }
try --set split.kind=interleaved --set 'split.test_names=[x]' --set split.target_tasks=5
try --set 'split.mode=by_net:test-vgg_16' --set 'split.test_names=[vgg_16]'
try --set split.kind=device --set split.target_tasks=5 --set 'split.valid_names=[a]'
try --set split.kind=network --set 'split.test_names=[vgg_16, resnet_81]'
try --set split.kind=network --set 'split.test_names=[vgg_16, lstm]' --set 'split.valid_names=[lstm_bs4]'
try --set split.kind=device --set 'split.test_names=[zen5-avx2]'
try --set split.kind=device --set 'split.test_names=[zen5-avx512]'
try --set split.kind=device --set 'split.test_names=[zen5-avx512]' --set split.target_tasks=80
try --set split.kind=task --set 'data.sample=sample1'
try --set 'data.sample=network-vgg_16-dcgn'
try --set 'data.sample=t4:sample200'
try --set 'data.sample=sample200.by_net:test-vgg_16'
try --set 'split.mode=by_device:train-all'
try --set 'split.mode=by_net:train-all,test-resnet18'
