package protocol

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Expiry is a rule of a bucket's lifecycle that deletes objects below the prefix of an archive.
type Expiry struct {
	Rule   string        // its name, "" for none
	Prefix string        // of the objects' names within the archive; "": all of them
	After  time.Duration // since their creation; 0: at a date, or at once
}

// Codes of a bucket's lifecycle.
const (
	LifecycleOwn   = "lifecycle_own"   // deletes manifests and what else the archive keeps of itself
	LifecycleEarly = "lifecycle_early" // deletes objects that a start still looks for
	LifecycleData  = "lifecycle_data"  // deletes archived items later: it is the archive's retention
)

// Lifecycle judges the rules of a bucket that delete objects of an archive. own begins the names of
// what the archive keeps of itself, and reread is how far back a start looks for objects that it
// may have written. What a rule deletes later than that is retention, which the bucket's owner
// decides: it is worth a line, and nothing is broken. mend replaces the rules.
func Lifecycle(bucket string, rules []Expiry, own string, reread time.Duration, mend string) (found Premises) {
	for _, r := range rules {
		after := "at once or at a date"
		if r.After > 0 {
			after = fmt.Sprintf("after %d days", int(r.After/(24*time.Hour)))
		}
		prefix := cmp.Or(r.Prefix, "everything")
		p := Premise{
			Code: LifecycleData, What: fmt.Sprintf("lifecycle rule %q of bucket %s", r.Rule, bucket),
			Found: prefix + ", " + after, Notice: true, Cost: "there may be no other copy of the items",
		}
		switch {
		case strings.HasPrefix(own, r.Prefix) || strings.HasPrefix(r.Prefix, own):
			p.Code, p.Notice, p.Mend = LifecycleOwn, false, mend
			p.Wanted = "limited to what is below tr_table="
			p.Cost = "the archive loses its manifests, and tables without a target their state"
		case r.After < reread:
			p.Code, p.Notice, p.Mend = LifecycleEarly, false, mend
			p.Wanted = fmt.Sprintf("later than %d days", int(reread/(24*time.Hour)))
			p.Cost = "items are deleted for good soon after they were archived, and a start may archive their events twice"
		}
		found = append(found, p)
	}
	return found
}
