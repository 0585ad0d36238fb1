package test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// listedLetter is a line of `dlq list --json`.
type listedLetter struct{ ID, Code, Reason, Sink string }

// listLetters returns what `dlq list` prints, oldest first.
func (w *world) listLetters() (all []listedLetter) {
	w.t.Helper()
	for line := range strings.Lines(w.ok("dlq", "list", "--json")) {
		var l listedLetter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, l)
	}
	return all
}

// openQueue opens the queue as commands do, with or without a running daemon.
func (w *world) openQueue(ctx context.Context) *queue.Queue {
	w.t.Helper()
	q, err := queue.OpenClient(ctx, queue.Options{Pipeline: "shop", Dir: filepath.Join(w.dir, "data")}, zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// publishLetter publishes a foreign message into the dead letters of a table.
func (w *world) publishLetter(table, id, data string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	q := w.openQueue(ctx)
	defer func() { _ = q.Close() }()
	js, err := jetstream.New(q.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	for info := range js.ListStreams(ctx).Info() {
		if !strings.HasSuffix(info.Config.Name, "_letters") || !strings.HasSuffix(info.Config.Description, " "+table) {
			continue
		}
		if _, err := js.Publish(ctx, strings.Replace(info.Config.Subjects[0], "*", id, 1), []byte(data)); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatalf("no dead letters of %s", table)
}

// storeLetters adds dead letters while no daemon runs.
func (w *world) storeLetters(table string, letters ...*deadletter.Letter) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	q := w.openQueue(ctx)
	defer func() { _ = q.Close() }()
	l, err := q.Log(ctx, table)
	if err != nil {
		w.t.Fatal(err)
	}
	box, err := l.DeadLetters(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, letter := range letters {
		if err := box.Put(ctx, letter); err != nil {
			w.t.Fatal(err)
		}
	}
}

// twoDeadLetters runs a daemon whose table has two dead letters of one item in a shared row: the
// first removes attribute b, the second changes a. Bigtable still holds b.
func (w *world) twoDeadLetters() *daemon {
	w.t.Helper()
	w.shareRows()
	w.prepare("Orders")
	w.Put("Orders", "p", "s", `"a":{"N":"1"},"b":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	w.Bigtable.Faults.RefuseRow([]byte("p"), codes.InvalidArgument, 2)
	w.Put("Orders", "p", "s", `"a":{"N":"1"}`)
	d.until("the first is a letter", func() bool { return d.table("Orders").DeadLetters == 1 })
	w.Put("Orders", "p", "s", `"a":{"N":"2"}`)
	d.until("so is the next one", func() bool { return d.table("Orders").DeadLetters == 2 })
	return d
}

// TestRetryAppliesTheLettersOfAnItemInOrder retries the second letter of an item, which must apply
// the first one before: the second is a difference from the first, and alone it would never remove
// b.
func TestRetryAppliesTheLettersOfAnItemInOrder(t *testing.T) {
	w := newWorld(t, 801)
	d := w.twoDeadLetters()
	letters := w.listLetters()
	if letters[1].Code != "dirty" {
		t.Fatalf("letters %+v, want the second one to be dirty", letters)
	}
	w.ok("dlq", "retry", letters[1].ID)
	d.until("the letters are gone", func() bool { return d.table("Orders").DeadLetters == 0 })
	w.Put("Orders", "p", "s", `"c":{"N":"3"}`)
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

func TestRetryRefusesADifferenceFromWhatWasNeverApplied(t *testing.T) {
	w := newWorld(t, 802)
	w.twoDeadLetters()
	letters := w.listLetters()
	w.ok("dlq", "drop", letters[0].ID, "--yes")
	w.refused(4, "", "dlq", "retry", letters[1].ID)
	w.refused(4, "", "dlq", "retry", "--all")
	left := w.listLetters()
	if len(left) != 1 || left[0].Code != "dirty" || !strings.Contains(left[0].Reason, "never applied") {
		t.Errorf("letters %+v, want the refused one with its reason", left)
	}
}

func TestRetryStopsAnItemAtItsFirstRefusal(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 803)
	d := w.twoDeadLetters()
	w.Put("Orders", "other", "s", `"a":{"N":"1"}`)
	d.settle("Orders")
	w.Bigtable.Faults.RefuseRow([]byte("p"), codes.InvalidArgument, 2)
	r := w.command("dlq", "retry", "--all", "--json")
	if r.code != 4 || !strings.Contains(r.out, `"applied":0`) || !strings.Contains(r.out, `"refused":1`) ||
		!strings.Contains(r.out, `"left":1`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if n := len(w.listLetters()); n != 2 {
		t.Errorf("%d letters are left, want both", n)
	}
	w.ok("dlq", "retry", "--all")
	d.until("the letters are gone", func() bool { return d.table("Orders").DeadLetters == 0 })
	w.Equal("Orders")
}

// A mapping that run refuses is never used: only the owner of the table writes rows, and there is
// none.
func TestRetryUnderAnotherMappingIsRefused(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 804)
	d := w.twoDeadLetters()
	d.stop()
	w.write("orders.yaml", "families: {d: {max_versions: 1}}\nrules:\n- name: item\n  match: {pk: \"{p}\", sk: \"{s}\"}\n"+
		"  row: \"other#{p}\"\n  cells: [{attrs: all, except: [pk, sk], to: \"d:{s}/{attr}\"}]\n")
	w.refused(3, "owner", "dlq", "retry", "--all")
	w.refused(3, "mapping", "run")
	w.refused(3, "owner", "dlq", "retry", "--all")
	if n := len(w.listLetters()); n != 2 {
		t.Errorf("%d letters are left, want both", n)
	}
}

func TestMalformedLetterHoldsNoOther(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 805)
	d := w.twoDeadLetters()
	d.stop()
	malformed := &change.Change{SequenceNumber: "1", KeyHash: 7, Version: 1, Raw: []byte(`{"dynamodb":{"Keys"`)}
	w.storeLetters("Orders", deadletter.New("Orders", "bigtable", malformed, "malformed", "cut off", time.Unix(1, 0)))
	d = w.run()
	d.until("it runs", func() bool { return d.table("Orders").DeadLetters == 3 })
	r := w.command("dlq", "retry", "--all", "--json")
	if r.code != 4 || !strings.Contains(r.out, `"applied":2`) || !strings.Contains(r.out, `"refused":1`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	w.Equal("Orders")
}

// TestLettersAreChosenByWhatTheyHave lists, retries and drops the dead letters of one code, and
// leaves the others.
func TestLettersAreChosenByWhatTheyHave(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 813)
	d := w.twoDeadLetters()
	d.stop()
	malformed := &change.Change{SequenceNumber: "1", KeyHash: 7, Version: 1, Raw: []byte(`{"dynamodb":{"Keys"`)}
	w.storeLetters("Orders", deadletter.New("Orders", "bigtable", malformed, "malformed", "cut off", time.Unix(1, 0)))
	d = w.run()
	d.until("it runs", func() bool { return d.table("Orders").DeadLetters == 3 })
	for flags, want := range map[string]int{
		"--code malformed": 1, "--sink bigtable": 3, "--sink archive": 0, "--table Orders": 3,
		"--table Orders --sink bigtable --code malformed": 1,
	} {
		out := w.ok(append([]string{"dlq", "list", "--json"}, strings.Fields(flags)...)...)
		if n := strings.Count(out, "\n"); n != want {
			t.Errorf("dlq list %s: %d letters, want %d:\n%s", flags, n, want, out)
		}
	}
	if r := w.command("dlq", "retry", "--code", "malformed", "--json"); r.code != 4 ||
		!strings.Contains(r.out, `"applied":0`) || !strings.Contains(r.out, `"refused":1`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if ids := w.ok("__complete", "dlq", "show", ""); strings.Count(ids, "Orders, bigtable: ") != 3 {
		t.Errorf("a shell completes\n%s", ids)
	}
	if codes := w.ok("__complete", "dlq", "drop", "--code", ""); !strings.Contains(codes, "malformed\n") {
		t.Errorf("a shell completes\n%s", codes)
	}
	w.ok("dlq", "drop", "--code", "malformed", "--yes")
	if n := len(w.listLetters()); n != 2 {
		t.Errorf("%d letters are left, want the two others", n)
	}
	w.ok("dlq", "retry", "--table", "Orders")
	d.until("no letter is left", func() bool { return d.table("Orders").DeadLetters == 0 })
	w.Equal("Orders")
}

// TestDamagedLetterHidesNoOther publishes a foreign message into the dead letters: it must be
// listed, can be dropped, and blocks neither the other letters nor the daemon.
func TestDamagedLetterHidesNoOther(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t, 807)
	d := w.twoDeadLetters()
	w.publishLetter("Orders", "stray", "not a dead letter")
	d.until("it is counted", func() bool { return d.table("Orders").DeadLetters == 3 })
	r := w.command("dlq", "retry", "--all", "--json")
	if r.code != 4 || !strings.Contains(r.out, `"applied":2`) || !strings.Contains(r.out, `"refused":1`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	left := w.listLetters()
	if len(left) != 1 || left[0].ID != "stray" || left[0].Code != deadletter.CodeUnreadable {
		t.Fatalf("letters %+v, want the stray one", left)
	}
	w.Put("Orders", "q", "s", `"a":{"N":"1"}`)
	d.settle("Orders")
	w.ok("dlq", "drop", "stray", "--yes")
	d.until("no letter is left", func() bool { return d.table("Orders").DeadLetters == 0 })
	w.Equal("Orders")
}

// TestLetterOfTheArchiveIsRetried: its event is archived once, also when the archive has it
// already.
func TestLetterOfTheArchiveIsRetried(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 806)
	w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
	w.archive = "{file: ./archive, roll: 1s}"
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "p", "s", fmt.Sprintf(`"expires":{"N":"%d"}`, w.Clock.Now().Unix()))
	d.settle("Orders")
	w.Clock.Advance(time.Minute)
	w.DynamoDB.ExpireNow(w.Clock.Now())
	d.settle("Orders")
	d.stop()
	var expired *change.Change
	for _, c := range w.readLog("Orders").changes {
		if c.TTL {
			expired = c
		}
	}
	if expired == nil {
		t.Fatal("nothing has expired")
	}
	w.storeLetters("Orders", deadletter.New("Orders", "archive", expired, "refused", "by the test", w.Clock.Now()))
	d = w.run()
	d.until("it runs", func() bool { return d.table("Orders").DeadLetters == 1 })
	d.until("the event is in an object", func() bool { return w.readArchive().total == 1 })
	w.ok("dlq", "retry", "--all")
	if n := len(w.listLetters()); n != 0 {
		t.Errorf("%d letters are left", n)
	}
	d.stop()
	if n := w.readArchive().total; n != 1 {
		t.Errorf("the archive has %d events, want 1", n)
	}
}
