# a wrong value is an error that lists the legal ones
cdmpp-profile; echo "status $?"
cdmpp-profile measure; echo "status $?"
cdmpp-profile records; echo "status $?"
cdmpp-profile records --tasks t; echo "status $?"
cdmpp-profile records --jobs 0 --tasks t r.json; echo "status $?"
cdmpp-profile corun r.json; echo "status $?"
cdmpp-profile corun --tasks t --limit 65 r.json; echo "status $?"
