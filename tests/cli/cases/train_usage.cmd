cdmpp-train 2>&1
cdmpp-train --autotune s.yaml --trial c.yaml
cdmpp-train --trial --finetune m c.yaml
cdmpp-train a.yaml b.yaml
cdmpp-train --print-confg a.yaml
cdmpp-train --usage
# a file that is not there, and one beside it whose name is near
: >quick.yaml; cdmpp-train qiuck.yaml --out m.cdmpp 2>&1; echo "exit $?"
cdmpp-train nothing-like-it.yaml --out m.cdmpp 2>&1; echo "exit $?"
