package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestTableWithoutTargetFromItsStartToItsEnd: no command needs Bigtable, a lost log is refused
// until recover, and after that each item that expired is in the archive once. Then it is retired.
func TestTableWithoutTargetFromItsStartToItsEnd(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t, 271)
	w.archive = `{url: "file:archive", roll: 1s}`
	w.tables = []string{"{source: Orders, target: orders}"}
	w.prepare("Orders")
	w.tables = []string{"{source: Orders, archive: {}}"}
	w.configure()
	text, err := os.ReadFile(filepath.Join(w.dir, "tailrace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(text), "bigtable: {", "# {", 1)
	w.write("tailrace.yaml", without)
	expect := func(code int, said string, args ...string) {
		t.Helper()
		if r := w.command(args...); r.code != code || !strings.Contains(r.out+r.err, said) {
			t.Errorf("%v: exit %d, want %d and %q\n%s%s", args, r.code, code, said, r.out, r.err)
		}
	}
	round := 0
	expire := func() {
		round++
		for i := range 10 {
			w.Put("Orders", fmt.Sprint("p", round), fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.Clock.Now().Unix()-1))
			w.Put("Orders", "user", fmt.Sprint(i), "")
			w.Delete("Orders", "user", fmt.Sprint(i))
		}
		w.DynamoDB.ExpireNow(w.Clock.Now())
	}
	expect(0, "Orders → the archive, and nothing else", "check")
	for _, args := range []string{
		"verify", "schema", "mapping diff", "resync --table Orders", "cutover --table Orders --out x",
	} {
		expect(2, "has a target", strings.Fields(args)...)
	}
	d := w.run()
	expire()
	d.until("they are archived", func() bool { return w.readArchive().total == 10 })
	if f := w.formats(); f.Format != checkpoint.Format || !f.Finalized {
		t.Errorf("a new pipeline without targets: %+v", f)
	}
	name := fmt.Sprintf("archive/_tailrace/format!shop/life-%012d.json", checkpoint.Format)
	if _, err := os.Stat(filepath.Join(w.dir, name)); err != nil {
		t.Errorf("its format is kept nowhere: %v", err)
	}
	d.kill()
	expire()
	d = w.run()
	expire()
	d.until("all are archived", func() bool { return w.readArchive().total == 30 })
	expect(0, "what was deleted is kept for the archive", "status")
	d.kill()

	if err := os.RemoveAll(filepath.Join(w.dir, "data")); err != nil {
		t.Fatal(err)
	}
	expire()
	expect(3, "the log is empty or not there", "run")
	expect(3, "the log is empty or not there", "check")
	expect(0, "Orders begins life 2", "recover", "--all", "--yes")
	expect(0, "Orders is already recovering", "recover", "--all")
	d = w.run()
	d.until("all are archived", func() bool { return w.readArchive().total >= 40 })
	w.Clock.Advance(70 * time.Minute)
	d.until("every hour is closed", func() bool {
		return !strings.Contains(w.ok("archive", "list", "--json"), `"state":"open"`)
	})
	// All of it is there, but the stream that was lost with the log cannot show it.
	expect(0, `"verdict":"unproven"`, "archive", "verify", "--full", "--json")
	expect(0, "archive-stream-lost-1", "archive", "verify")
	expect(3, "it is still archived", "table", "retire", "--table", "Orders", "--yes")
	d.stop()
	w.archiveIsWhatExpired()

	w.CreateTable("Other")
	w.write("tailrace.yaml", strings.Replace(without, "source: Orders, ", "source: Other, ", 1))
	expect(0, "Table Orders is retired", "table", "retire", "--table", "Orders", "--yes")
	expect(0, "Nothing is kept of table Orders", "table", "retire", "--table", "Orders", "--yes")
	w.write("tailrace.yaml", without)
	expire()
	d = w.run() // as if it had never been archived, but for what the archive has
	d.until("what expired since is archived", func() bool { return w.readArchive().total >= 50 })
	d.stop()
	w.archiveIsWhatExpired()
}
