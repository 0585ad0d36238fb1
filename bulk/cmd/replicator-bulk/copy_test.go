package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/delegation"
)

var copySeed = flag.Uint64("copy.seed", 1, "moments at which jobs are killed")

// write changes items of the export and others, until ctx ends.
func (w *world) write(ctx context.Context, n int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	for i := 0; ctx.Err() == nil; i++ {
		k := rnd.IntN(n / 4) // the other items are as the copy writes them
		pk, sk := fmt.Sprintf("c%d", k%97), fmt.Sprintf("o%d", k)
		switch rnd.IntN(4) {
		case 0:
			w.Delete(tableName, pk, sk)
		case 1:
			w.Put(tableName, pk, "new"+sk, `"n":{"N":"1"}`)
		case 2:
			w.Update(tableName, pk, sk, "SET changed = :n REMOVE price", fmt.Sprintf(`":n":{"N":"%d"}`, i))
		default:
			w.Put(tableName, pk, sk, fmt.Sprintf(`"again":{"N":"%d"}`, i))
		}
	}
}

// TestCopyUnderKills copies an export on Prism while an application writes to the table and the
// daemon applies the stream. Jobs are killed with SIGKILL once so many files have marks, and two
// run beside each other. Every cell must be equal in the end.
func TestCopyUnderKills(t *testing.T) {
	const items, files = 1600, 20
	w := newWorld(t, items, files, func(int) bool { return false })
	w.open("c.1")
	rnd := rand.New(rand.NewPCG(*copySeed, 5))
	writing, stop := context.WithCancel(t.Context())
	var writers errgroup.Group
	for i := range 2 {
		writers.Go(func() error { w.write(writing, items, *copySeed+uint64(i)); return nil })
	}
	for marks := range 3 {
		p := w.launch()
		least := min(marks*5+rnd.IntN(5), files-1)
		w.Until("a job has stored marks", func() bool { return len(w.marks()) >= least })
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.over
	}
	before := len(w.marks())
	beside := w.launch()
	code, text := w.wait(w.launch())
	stop()
	_ = writers.Wait()
	if other, text := w.wait(beside); other != 0 {
		t.Errorf("the job beside it ended with %d:\n%s", other, text)
	}
	marks := w.marks()
	if code != 0 || len(marks) != files {
		t.Fatalf("exit code %d, %d marks:\n%s", code, len(marks), text)
	}
	sum := delegation.FileMark{}
	for _, m := range marks {
		sum.Items += m.Items
		sum.Rows += m.Rows
		sum.Skipped += m.Skipped
	}
	if sum.Items != items || sum.Rows+sum.Skipped != items {
		t.Errorf("%+v", sum)
	}
	t.Logf("%d files had marks when the last job began, %d rows left as they were", before, sum.Skipped)
	w.daemon.Settle()
	w.equal()
}

// TestRefusedItemsAreHandedBack by the number of their line, and nothing of them is printed.
func TestRefusedItemsAreHandedBack(t *testing.T) {
	const items, files = 300, 3
	w := newWorld(t, items, files, func(i int) bool { return i%50 == 7 })
	w.open("c.1")
	code, text := w.wait(w.launch("--dry-run"))
	for _, want := range []string{"c.1", w.export.URL, "300", "nothing was written"} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("dry run ends with %d and lacks %q:\n%s", code, want, text)
		}
	}
	if got := w.marks(); len(got) != 0 {
		t.Fatalf("a dry run stored marks: %v", got)
	}
	code, text = w.wait(w.launch())
	back := 0
	for n, m := range w.marks() {
		for i, line := range m.HandedBack {
			if back++; line < 1 || line > w.export.Files[n].Items || i > 0 && line <= m.HandedBack[i-1] {
				t.Errorf("file %d: lines %v", n, m.HandedBack)
			}
		}
	}
	if code != 0 || back != items/50 || !strings.Contains(text, "6 items handed back") {
		t.Errorf("exit code %d, %d lines handed back:\n%s", code, back, text)
	}
	for _, secret := range []string{"longer than a qualifier", `"S"`, "xxxx"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed:\n%s", secret, text)
		}
	}
	w.equal()
	for reason, want := range map[delegation.CloseReason]int{delegation.CloseTakeback: 3, delegation.CloseDone: 0} {
		closed := *w.order
		closed.Revision, closed.Closed, closed.Reason = w.order.Revision+1, 1, reason
		w.swap(w.order, &closed)
		w.order = &closed
		if code, text := w.wait(w.launch()); code != want || !strings.Contains(text, "copie") {
			t.Errorf("closed, %s: exit code %d:\n%s", reason, code, text)
		}
	}
}

// TestJobIsTranslatedForDataflow without a cloud, by Beam's own dry run.
func TestJobIsTranslatedForDataflow(t *testing.T) {
	c, err := parse("copy", []string{
		"--pipeline", "shop", "--table", tableName, "--bigtable", "acme/main", "--runner", "dataflow", "--",
		"--project=acme", "--region=us-central1", "--staging_location=gs://acme-staging/bulk", "--dry_run",
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	beam.Init()
	c.place.Order = "c.1"
	if err := c.engine(t.Context(), c.place, 50_000); err != nil {
		t.Error(err)
	}
}

func TestCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "replicator-bulk copy",
		"compare":           "replicator-bulk verify --comparison",
		"verify":            "--comparison is missing",
		"copy":              "--pipeline and --table",
		"copy --pipeline p": "--pipeline and --table",
		"copy --pipeline p --table T --bigtable acme":                  "PROJECT/INSTANCE",
		"copy --pipeline p --table T --bigtable a/b --runner direct":   "prism, flink",
		"copy --pipeline p --table T --bigtable a/b --parallelism=2":   "parallelism",
		"copy --pipeline p --table T --bigtable a/b -- --no-such-flag": "no-such-flag",
		"copy --pipeline p --table T --bigtable a/b -- more":           "more",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(line)...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(strings.ToLower(string(out)), strings.ToLower(want)) {
			t.Errorf("%q ends with %d:\n%s", line, cmd.ProcessState.ExitCode(), out)
		}
	}
}
