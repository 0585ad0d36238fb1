package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/verify"
)

// facts are what is known of an item.
type facts struct {
	names      *names
	table      string // source table
	key        string // canonical; "" where it is not shown
	notStarted bool
	retired    string // which replication has ended; "" if it has not
	absent     bool
	refused    string // the mapping's reason
	rule       string // that takes the item, as "rule item"; "" where none does, or it is not known

	seen   *verify.Verdict // nil: nothing could be compared
	proven bool            // seen stands behind a proof
	why    string          // there is no proof, or nothing was compared
	next   string          // what ends that

	pending  int      // changes of the item in the log that Bigtable has not applied
	obstacle obstacle // why nothing is applied
	fenced   bool
	moving   bool
	eta      time.Duration

	logged       bool // the log has a change of the item
	asLogged     bool // the item is as the newest one left it
	rowsAsLogged bool // the rows are

	letters  int
	letter   string // the first one's id
	requests int
}

// beside notes the dead letters and requests of the item.
func (f *facts) beside(h *history) {
	if f.letters = len(h.letters); f.letters > 0 {
		f.letter = h.letters[0].ID
	}
	f.requests = len(h.requests)
}

// verdict describes the state of the item in one sentence.
func (f *facts) verdict() Verdict {
	v := Verdict{Proven: f.proven, Pending: f.pending}
	switch {
	case f.retired != "":
		v.Status, v.Sentence = NotStarted, "not compared: "+f.retired
	case f.notStarted:
		v.Status, v.Sentence = NotStarted, "not started: nothing of the table was ever replicated"
	case f.refused != "":
		v.Status, v.Sentence = Refused, f.refusal(f.refused)
	case f.seen == nil:
		v.Status, v.Sentence = Unproven, "unproven: the rows could not be compared: "+f.why
	default:
		v.Status, v.Sentence = f.comparison()
	}
	if v.Status == Behind {
		v.ETA = f.eta.Seconds()
	}
	// The text of a service may end with a stop.
	v.Sentence = strings.TrimSuffix(v.Sentence, ".") + f.besides(v.Status) + "."
	v.Next = f.nextStep(v.Status)
	return v
}

// refusal describes why the mapping refuses the item. A rule may take an item and be unable to
// write its rows or cells.
func (f *facts) refusal(why string) string {
	if f.rule != "" {
		return "refused: " + f.rule + " takes the item, and cannot write it: " + why
	}
	return "refused: the mapping does not take the item: " + why
}

// nextStep returns what to do about the item; "" where there is nothing to do.
func (f *facts) nextStep(s Status) string {
	switch s {
	case Equal, EqualByLog, Kept, Behind:
		return f.obstacle.next
	case NotStarted:
		if f.retired == "" {
			return "`replicator run` begins with the table"
		}
	case Refused:
		if f.letters > 0 {
			return "mend the item in DynamoDB, or the mapping; then `replicator dlq retry " + f.letter + "`"
		}
		return "mend the item in DynamoDB, or the mapping (`replicator mapping diff`)"
	case Different:
		switch {
		case f.fenced:
			return f.obstacle.next
		case f.letters > 0:
			return "mend what the letter names, then `replicator dlq retry " + f.letter + "`"
		}
		return "find out what wrote it, then `" + f.repair() + "`"
	case Unproven:
		return f.next
	}
	return ""
}

// repair returns the command that makes the rows of the item true.
func (f *facts) repair() string {
	if f.key == "" { // its key is data
		return "replicator repair --table " + f.table + " --keys FILE"
	}
	return "echo '" + strings.ReplaceAll(f.key, "'", `'\''`) + "' | replicator repair --table " + f.table + " --keys -"
}

// comparison describes the result of the comparison.
func (f *facts) comparison() (Status, string) {
	switch f.seen.Status {
	case verify.Equal:
		if f.absent {
			return Equal, "equal: the table has no such item, and Bigtable holds nothing of it"
		}
		return Equal, "equal"
	case verify.EqualByLog:
		return EqualByLog, "equal by the log: the item changes all the time, and its rows are what the log says"
	case verify.Kept:
		return Kept, fmt.Sprintf("equal: the table has no such item, and %s of it may remain (%s)",
			english.Plural(f.seen.Kept, "cell", ""), f.seen.Why)
	case verify.Refused:
		f.rule = f.seen.Rule
		return Refused, f.refusal(f.seen.Why)
	case verify.Different, verify.Unproven:
	}
	if f.pending > 0 {
		return Behind, f.behind()
	}
	return f.different()
}

// behind describes how far the rows are behind the log.
func (f *facts) behind() string {
	text := fmt.Sprintf("the row is %s behind", english.Plural(f.pending, "change", ""))
	switch {
	case f.obstacle.why != "":
		return text + ", and nothing is applied: " + f.obstacle.why
	case f.eta > 0:
		return fmt.Sprintf("%s: applied in about %d s", text, int(f.eta.Seconds()))
	case !f.moving:
		return text + ", and Bigtable has applied nothing for some seconds: `replicator status` says what fails"
	}
	return text
}

// different describes what differs, and whether it may be on its way.
func (f *facts) different() (Status, string) {
	what := f.differences()
	switch {
	case f.proven && f.seen.Status == verify.Different:
		return Different, "different: " + what + ", and nothing is pending"
	case f.proven:
		return Unproven, "unproven: " + f.seen.Why
	case f.logged && f.asLogged && !f.rowsAsLogged && f.seen.Status == verify.Different && f.letters == 0:
		return Different, "different: " + what +
			", and nothing is pending: the newest change of the item in the log is applied"
	case f.logged && !f.asLogged && f.rowsAsLogged && f.obstacle.why != "":
		return Behind, "the row is behind: it is as the log says, the item has changed since, and nothing is read: " +
			f.obstacle.why
	case f.logged && !f.asLogged:
		return Unproven, "unproven: " + what + ", and the item has changed since its newest change in the log: " + f.why
	}
	return Unproven, "unproven: " + what + ", and nothing proves that no change is on its way: " + f.why
}

// differences names the first differing cell, and counts the others.
func (f *facts) differences() string {
	cells := f.seen.Cells
	if len(cells) == 0 {
		return "the row differs"
	}
	text := describe(f.names, &cells[0])
	if n := len(cells) - 1; n > 0 {
		text += fmt.Sprintf(" (and %s)", english.Plural(n, "other difference", ""))
	}
	return text
}

// besides lists what else concerns the item.
func (f *facts) besides(s Status) string {
	var parts []string
	if n := f.letters; n > 0 {
		parts = append(parts, fmt.Sprintf("%s of it %s open: `replicator dlq show %s`",
			english.Plural(n, "dead letter", ""), isAre(n), f.letter))
	}
	if n := f.requests; n > 0 {
		parts = append(parts, fmt.Sprintf("%s for it %s waiting", english.Plural(n, "request", ""), isAre(n)))
	}
	if s == Equal && f.obstacle.why != "" {
		parts = append(parts, "what is written from now on does not arrive: "+f.obstacle.why)
	}
	if s == NotStarted || len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, "; ")
}

// areOf returns "1 item is" or "2 items are".
func areOf(n int, noun string) string { return english.Plural(n, noun, "") + " " + isAre(n) }

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// missingRow returns the verdict of a row that is not in the target, from the verdicts of the items
// that its key names. If it names none, nothing is compared.
func missingRow(target string, items []RowItem) Verdict {
	if len(items) == 1 {
		return items[0].Verdict
	}
	if len(items) > 1 {
		return together(items, 0, 0)
	}
	return Verdict{Status: Unproven, Sentence: "unproven: table " + target + " has no such row, and which items belong " +
		"in it is not known from its key: `replicator explain --key` shows the rows of an item."}
}

// together returns the verdict of a row from the verdicts of its items.
func together(items []RowItem, foreign, unknown int) Verdict {
	v := Verdict{Status: Equal, Proven: true}
	count := map[Status]int{}
	for i := range items {
		one := &items[i].Verdict
		count[one.Status]++
		v.Pending += one.Pending
		v.Proven = v.Proven && one.Proven
	}
	var parts []string
	add := func(n int, noun, rest string, as Status) {
		if n == 0 {
			return
		}
		if v.Status == Equal {
			v.Status = as
		}
		parts = append(parts, areOf(n, noun)+" "+rest)
	}
	add(count[Different], "item", "different", Different)
	add(foreign, "cell", "foreign", Different)
	add(count[Refused], "item", "refused by the mapping", Refused)
	add(count[Unproven], "item", "unproven", Unproven)
	add(unknown, "cell", "of an unknown owner", Unproven)
	add(count[Behind], "item", "behind", Behind)
	switch good := count[Equal] + count[EqualByLog] + count[Kept]; {
	case len(parts) > 0:
		v.Sentence = fmt.Sprintf("%s: %s", v.Status, strings.Join(parts, ", "))
		if good > 0 {
			v.Sentence += fmt.Sprintf(", and %s equal", areOf(good, "item"))
		}
	case len(items) == 0:
		v.Sentence = "equal: no item of ours is in the row, and nothing in it is foreign"
	default:
		v.Sentence = fmt.Sprintf("equal: %s equal, and every cell has an owner", areOf(good, "item"))
	}
	v.Sentence += "."
	v.Next = nextOf(items, foreign)
	return v
}

// nextOf returns what to do about a row: what the first of its items needs that is not good, or
// else what deletes foreign cells.
func nextOf(items []RowItem, foreign int) string {
	for i := range items {
		if v := &items[i].Verdict; !v.Good() && v.Next != "" {
			return v.Next
		}
	}
	if foreign > 0 {
		return "find out what wrote it; `replicator verify --differences FILE` names such cells, and `replicator repair " +
			"--from FILE --delete-foreign` deletes them"
	}
	for i := range items {
		if next := items[i].Verdict.Next; next != "" {
			return next
		}
	}
	return ""
}
