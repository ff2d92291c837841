# what networks of the zoo are: operators, shapes, operations; tasks, keys, weights, definitions. None of it changes unnoticed
. "$T/lib.sh"
zoo=$(cdmpp-profile --list-networks | sed 1d | cut -d ' ' -f 1)
for n in $zoo; do kept "$n" cdmpp-profile --list-ops --network "$n" --batch-size 2; done
echo "--- tasks, as on CPUs and as on GPUs"
for n in $zoo; do
    kept "$n" cdmpp-profile --list-tasks --network "$n" --out-tasks "$n.nhwc" --target "$CPU"
    kept_files "$n.nhwc"
done
for n in resnet-18 mobilenet-v3 dcgan yolov3-tiny nasnet-large dpn-68 resnet3d-18 gru t5-small vit gcn layer-norm; do
    kept "$n" cdmpp-profile --list-tasks --network "$n" --target cuda --batch-size 3 --json --out-tasks "$n.nchw"
    kept_files "$n.nchw"
done
echo "--- other sizes"
for n in resnet-18 inception-v3 yolov5n mobilenet-v2; do kept "$n 97" cdmpp-profile --list-ops --json --network "$n" --input-size 97; done
for n in bert-tiny lstm gpt2 t5-small; do kept "$n 24" cdmpp-profile --list-ops --json --network "$n" --input-size 24; done
