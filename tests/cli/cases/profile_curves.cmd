# a network at several sizes: operators and shapes of the table are fixed, its times are not; a store reads it
# Long: no sanitizer.
export XDG_CACHE_HOME=$PWD/cache
cdmpp-profile curves --network rnn --input-size 2 --sizes batch=1,2 --trials 1 --threads 1 --budget-ms 1 --out c.tsv 2>err; echo "status $?"
cut -f1,3,4,5,6 c.tsv
cut -f7 c.tsv | sed 's/:[0-9.e-]*/:/g' | sort | uniq -c | sed 's/^ *//'
cdmpp-profile store import --store s.db --quiet c.tsv
cdmpp-profile curves --network dcgan; echo "status $?"
for s in batch input=1 batch=2,1 batch=1, batch=1,x side=1,2; do cdmpp-profile curves --network dcgan --sizes $s; done
cdmpp-profile curves --network dcgan --sizes batch=1,2 --batch-size 3; echo "status $?"
