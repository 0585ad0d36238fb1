package test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestResyncOfKeysBringsItemsThatTheStreamLacks names items that no stream has, one that does not
// exist, and one twice.
func TestResyncOfKeysBringsItemsThatTheStreamLacks(t *testing.T) {
	long(t, "15 s")
	w := newWorld(t, 821)
	w.shareRows() // copies nothing
	w.prepare("Orders")
	const n = 300
	var keys strings.Builder
	for i := range n {
		w.Put("Orders", "p", fmt.Sprint(i), `"a":{"N":"1"}`)
		fmt.Fprintf(&keys, "{\"pk\":\"p\",\"sk\":\"%d\"}\n", i)
	}
	fmt.Fprint(&keys, `{"pk":{"S":"p"},"sk":{"S":"none"}}`+"\n"+`{"pk":{"S":"p"},"sk":{"S":"0"},"a":{"N":"7"}}`+"\n")
	w.write("keys.jsonl", keys.String())
	w.Stream.Trim(w.Clock.Now().Add(time.Second))
	w.refused(3, "run", "resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait")
	d := w.run()
	d.settle("Orders")
	out := w.ok("resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait", "--json")
	if !strings.Contains(out, fmt.Sprintf(`"items":%d,`, n+2)) || !strings.Contains(out, `"hot":0,"letters":0`) {
		t.Error(out)
	}
	d.settle("Orders")
	w.Equal("Orders")
	out = w.ok("resync", "--table", "Orders", "--keys", "keys.jsonl", "--json")
	if !strings.Contains(out, `"requests":["`) {
		t.Error(out)
	}
	w.write("bad.jsonl", "{\"pk\":\"p\",\"sk\":\"1\"}\n{\"pk\":\"secret\"}\n")
	r := w.command("resync", "--table", "Orders", "--keys", "bad.jsonl", "--wait")
	if r.code != 2 || !strings.Contains(r.err, "line 2") || strings.Contains(r.err, "secret") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	d.stop()
	w.refused(3, "owner", "resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait")
}

// background runs a command beside the test. Its cleanup kills the command.
func (w *world) background(args ...string) (out, errs *output, ended <-chan struct{}, code func() int) {
	w.t.Helper()
	out, errs = &output{}, &output{}
	done := make(chan struct{})
	cmd := exec.Command(w.program(), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.env(), out, errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit code is read from ProcessState
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		w.raceFree(errs.String())
	})
	return out, errs, done, func() int { return cmd.ProcessState.ExitCode() }
}

// exportChanges exports what has changed in a table since it was created, with the view that has no
// old images: a repair needs the keys alone. Its point-in-time recovery must be on since.
func (w *world) exportChanges(table string, since time.Time) (url string) {
	w.t.Helper()
	if err := w.Buckets.Create("backups"); err != nil {
		w.t.Fatal(err)
	}
	reply := w.Call("ExportTableToPointInTime", fmt.Sprintf(`{
		"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/%s","S3Bucket":"backups","ExportType":"INCREMENTAL_EXPORT",
		"IncrementalExportSpecification":{"ExportFromTime":%d,"ExportToTime":%d,"ExportViewType":"NEW_IMAGE"}}`,
		table, since.Unix(), w.Clock.Now().Unix()))
	id := regexp.MustCompile(`"ExportArn":"([^"]*/export/([^"]*))"`).FindSubmatch(reply)
	if id == nil {
		w.t.Fatalf("export: %s", reply)
	}
	w.Until("the export is complete", func() bool {
		reply := w.Call("DescribeExport", fmt.Sprintf(`{"ExportArn":%q}`, id[1]))
		return bytes.Contains(reply, []byte("COMPLETED"))
	})
	return "file://" + filepath.Join(w.Buckets.Dir("backups"), "AWSDynamoDB", string(id[2]))
}

// TestWaitingResyncOutlivesItsOwner loses changes, the second one of items that moved twice among
// them, and resyncs what an incremental export names (attack 53). The owner is killed in the middle
// of that: the command says that it waits, and ends when the next owner has done its request.
func TestWaitingResyncOutlivesItsOwner(t *testing.T) {
	long(t, "looks for the owner every 5 s")
	w := newWorld(t, 822)
	w.write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{at}#{p}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`)
	w.tables = []string{"{source: Orders, target: orders, mapping: orders.yaml, backfill: none}"}
	w.prepare("Orders")
	w.Call("UpdateContinuousBackups",
		`{"TableName":"Orders","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`)
	const n = 30
	move := func(to string) {
		for i := range n {
			w.Put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"at":{"S":%q}`, to))
		}
	}
	move("a")
	w.Clock.Advance(2 * time.Second)
	since := w.Clock.Now()
	move("b")
	d := w.run()
	d.settle("Orders")
	d.stop()
	move("c")
	w.Delete("Orders", "p", "0")
	w.Clock.Advance(20 * time.Minute)
	url := w.exportChanges("Orders", since)
	w.Clock.Advance(26 * time.Hour)
	w.Stream.Sweep()
	d = w.run()
	d.until("the changes are lost", func() bool { return d.table("Orders").Gaps == 4 }) // one for each shard
	w.ok("resume", "--table", "Orders")
	asked, held := w.traps.set(point{op: "BatchGetItem"}, 1, false), w.traps.set(beforeWrite, n/2, true)
	out, errs, ended, code := w.background("resync", "--table", "Orders", "--from-export", url, "--wait", "--json")
	d.untilHit(asked)
	hasten := func(fact func() bool) func() bool {
		return func() bool {
			w.Clock.Advance(200 * time.Millisecond)
			return fact()
		}
	}
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	d.until("half of the items are written", hasten(func() bool { return over(held.hit) || over(ended) }))
	d.kill()
	held.open()
	w.Until("the command says that it waits", func() bool {
		return strings.Contains(errs.String(), "until a replicator owns the table again") || over(ended)
	})
	d = w.run()
	d.until("the command ends", hasten(func() bool { return over(ended) }))
	want := fmt.Sprintf(`"items":%d,`, n)
	if code() != 0 || !strings.Contains(out.String(), want) || !strings.Contains(errs.String(), "owns the table again\n") {
		t.Fatalf("exit %d: %s%s", code(), out, errs)
	}
	d.settle("Orders")
	w.Equal("Orders")
}
