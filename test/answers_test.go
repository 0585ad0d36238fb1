package test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

var (
	answersSeed   = flag.Uint64("answers.seed", 0, "which answer each call gets in the short form; 0: of the day")
	answersAll    = flag.Bool("answers.all", false, "give each call each answer, once and for a while: make answers")
	answersOnly   = flag.String("answers.only", "", "with -answers.all: only cells with this in their names")
	answersUpdate = flag.Bool("answers.update", false, "record the calls of a full run as the rows of the matrix")
)

const (
	// whileWrong is how long a server gives the wrong answer to every call. The periods of the protocol are seven times
	// shorter here than in production, where it would be about eight seconds.
	whileWrong = 1200 * time.Millisecond
	// healingTime is the longest time until all is well again after the last wrong answer.
	healingTime = 90 * time.Second
)

// answering is a world whose servers can be made to give wrong answers, with a replicator that is started again when
// it ends, as an orchestrator does.
type answering struct {
	*world
	shim  *shim
	d     *daemon
	items int             // written so far
	saw   map[string]bool // what a user saw since the last cell
}

func newAnswering(t *testing.T, seed uint64) *answering {
	t.Helper()
	x := &answering{world: newWorld(t, seed), shim: newShim(), saw: map[string]bool{}}
	x.traps.shim = x.shim
	x.dynamo = newHTTPTap(t, x.traps, x.shim.http("dynamodb", dynamoCall, dynamoRefusal, x.DynamoDB))
	x.S3.Use(func(next http.Handler) http.Handler { return x.shim.http("s3", s3Call, s3Refusal, next) })
	nats := newNATSShim(t, x.shim, x.NATS.URL())
	x.queue = fmt.Sprintf("{url: \"nats://%s\", max_bytes: 64MiB}", nats.addr)
	if err := x.Buckets.Create("cold"); err != nil {
		t.Fatal(err)
	}
	x.archive = "{url: \"s3://cold/archive\", roll: 1s}"
	x.more = []string{"AWS_ENDPOINT_URL_S3=" + x.S3.URL(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=y"}
	x.tables = []string{"{source: Orders, target: orders, backfill: none, on_ttl_expiry: archive}"}
	x.prepare("Orders")
	return x
}

// phase is a part of the life of a pipeline, with what makes the replicator go through it. It ends when the replicator
// is up to date.
type phase struct {
	name string
	live func(x *answering) error
}

// phases are the parts of the life of a pipeline, the cheapest first.
var phases = []phase{
	{"stream", (*answering).write},
	{"rotation", func(x *answering) error {
		x.Stream.Rotate("Orders")
		return x.write()
	}},
	{"archive", func(x *answering) error {
		x.Put("Orders", "session", fmt.Sprint(x.items), fmt.Sprintf(`"expires":{"N":"%d"}`, x.Clock.Now().Unix()-1))
		x.DynamoDB.ExpireNow(x.Clock.Now())
		if err := x.write(); err != nil {
			return err
		}
		return x.until("the expired item is archived", x.allArchived)
	}},
	{"verify", func(x *answering) error { return x.run0("verify") }},
	{"start", func(x *answering) error {
		x.d.signal()
		if code := x.d.exit(); code != 0 {
			x.saw[fmt.Sprintf("exit %d at its stop", code)] = true
		}
		x.d = x.run()
		return x.write()
	}},
	{"resync", func(x *answering) error { return x.run0("resync", "--table", "Orders", "--wait") }},
	{"copy", (*answering).copyTable},
	{"cutover", func(x *answering) error {
		if err := x.run0("cutover", "--table", "Orders", "--quiet", "2s", "--out", "cert.json"); err != nil {
			return err
		}
		if err := x.run0("cutover", "--table", "Orders", "--undo", "--yes"); err != nil {
			return err
		}
		return x.write()
	}},
	{"begin", func(x *answering) error {
		x.d = x.run()
		return x.write()
	}},
}

// copyTable adds a table with items that its stream does not have, and waits until they are copied.
func (x *answering) copyTable() error {
	name := fmt.Sprint("Old", len(x.tables))
	x.CreateTable(name)
	for i := range 20 {
		x.Put(name, "p", fmt.Sprint(i), `"a":{"S":"old"}`)
	}
	x.Stream.Trim(x.Clock.Now().Add(time.Second))
	x.tables = append(x.tables, fmt.Sprintf("{source: %s, target: %s}", name, target(name)))
	x.configure()
	if err := x.run0("schema", "--apply"); err != nil {
		return err
	}
	x.d.signal()
	x.d.exit()
	x.d = x.run()
	return x.write()
}

// write writes to the table, and waits until all of all tables is applied.
func (x *answering) write() error {
	for range 4 {
		x.items++
		x.Put("Orders", "p", fmt.Sprint(x.items%7), fmt.Sprintf(`"n":{"N":"%d"}`, x.items))
	}
	x.Delete("Orders", "p", fmt.Sprint(x.items%5))
	written := x.Clock.Now()
	x.Clock.Advance(2 * time.Second)
	behind := func(t pipeline.TableStatus) bool {
		return t.Copy != nil || t.AppliedThrough == nil || !t.AppliedThrough.After(written)
	}
	return x.until("everything written is applied", func() bool {
		s, ok := x.d.status()
		return ok && len(s.Tables) == len(x.tables) && !slices.ContainsFunc(s.Tables, behind)
	})
}

// until waits, while the sandbox's time goes on, and starts the replicator again where it has ended.
func (x *answering) until(what string, is func() bool) error {
	for began := time.Now(); time.Since(began) < healingTime; {
		select {
		case <-x.d.ended:
			x.saw[fmt.Sprintf("exit %d", x.d.cmd.ProcessState.ExitCode())] = true
			x.d = x.run()
		default:
		}
		x.look()
		if is() {
			return nil
		}
		x.d.hasten(300 * time.Millisecond)
		<-time.After(50 * time.Millisecond)
	}
	_, status := x.d.get("/status")
	return fmt.Errorf("not within %s: %s; status: %s\n%s", healingTime, what, status, tail(x.d.output.String(), 8))
}

// look notes what the replicator says of itself.
func (x *answering) look() {
	s, _ := x.d.status()
	for _, t := range s.Tables {
		if t.State != "running" {
			x.saw[t.State] = true
		}
	}
}

// run0 runs a command until it exits with 0. While a server answers wrongly it may end with 1 or 3, and with nothing
// else.
func (x *answering) run0(args ...string) error {
	for began := time.Now(); ; {
		out, errs, ended, code := x.background(args...)
		err := x.until("the command ends: "+strings.Join(args, " "), func() bool {
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		if err != nil {
			return fmt.Errorf("%w\n%s%s", err, out, errs)
		}
		got := code()
		if got == 0 {
			return nil
		}
		x.saw[fmt.Sprintf("%s: exit %d", args[0], got)] = true
		if got != 1 && got != 3 || time.Since(began) > healingTime {
			return fmt.Errorf("%s: exit %d: %s%s", strings.Join(args, " "), got, out, errs)
		}
	}
}

// allArchived reports whether the archive has as many events as items have expired.
func (x *answering) allArchived() bool {
	return x.readArchiveOf(filepath.Join(x.Buckets.Dir("cold"), "archive")).total == x.expired()
}

// remedied lists the answers that leave something red until a user acts, with the documented remedy.
//
// Bigtable answers a write with INVALID_ARGUMENT only where it will never take it: asked twice, it makes a dead letter.
var remedied = map[asked]map[wrong][]string{
	{"bigtable", "CheckAndMutateRow of a target"}: {sayInvalid: {"dlq", "retry", "--all"}},
}

// remedy applies the remedy for what the answer of a cell has left.
func (x *answering) remedy(c cell) error {
	args := remedied[c.call][c.answer]
	if args == nil || c.times > 0 {
		return nil
	}
	x.Clock.Advance(2 * time.Minute) // what was written less than a minute ago waits for a later reading
	if err := x.write(); err != nil {
		return err
	}
	if x.d.table("Orders").DeadLetters == 0 {
		return nil
	}
	x.saw["dead letters, until "+strings.Join(args, " ")] = true
	return x.run0(args...)
}

// judge checks, after the last wrong answer, that all is well: everything written is applied, nothing counts as lost,
// the replicator is ready, and every comparison says equal.
func (x *answering) judge() error {
	if err := x.write(); err != nil {
		return err
	}
	if err := x.until("ready", x.d.ready); err != nil {
		return err
	}
	s, _ := x.d.status()
	for _, t := range s.Tables {
		if t.Gaps+t.Accepted+t.DeadLetters+t.Shards.Unread > 0 || t.Foreign > 0 {
			return fmt.Errorf("%s: %d gaps, %d letters, %d unread shards, %d foreign columns", t.Source, t.Gaps+t.Accepted,
				t.DeadLetters, t.Shards.Unread, t.Foreign)
		}
		if err := x.openSides().compare(x.t.Context(), t.Source); err != nil {
			return fmt.Errorf("cell by cell: %w", err)
		}
	}
	return x.until("every expired item is archived", x.allArchived)
}

// judgeByCommands checks that the commands say so, too.
func (x *answering) judgeByCommands() error {
	if err := x.run0("status", "--wait", "applied=now"); err != nil {
		return err
	}
	return x.run0("verify")
}

// cell is one cell of the matrix: a call of a phase, the answer that it gets, once or for a while.
type cell struct {
	call   asked
	phase  string
	answer wrong
	times  int // below 0: for a while
}

func (c cell) String() string {
	if c.times < 0 {
		return fmt.Sprintf("%s: %s, for a while (%s)", c.call, c.answer, c.phase)
	}
	return fmt.Sprintf("%s: %s (%s)", c.call, c.answer, c.phase)
}

// try gives the answer of a cell, and judges what becomes of it.
func (x *answering) try(c cell) error {
	clear(x.saw)
	x.shim.arm(c.call, c.answer, c.times)
	over := make(chan struct{})
	var calming sync.WaitGroup
	calming.Go(func() {
		for c.times < 0 && x.shim.since() < whileWrong {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		if c.times < 0 {
			x.shim.calm()
		}
	})
	live := phases[slices.IndexFunc(phases, func(p phase) bool { return p.name == c.phase })].live
	err := live(x)
	close(over)
	calming.Wait()
	if err == nil {
		err = x.until("the call is made", func() bool { return x.shim.since() > 0 })
	}
	x.shim.calm()
	if err == nil {
		err = x.remedy(c)
	}
	if err != nil {
		return err
	}
	return x.judge()
}

// rowsOfAnswers reads the rows of the matrix: each call with its cheapest phase.
func rowsOfAnswers(t *testing.T) (rows []cell) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		i := strings.LastIndex(line, ": ")
		side, name, _ := strings.Cut(line[:i], " ")
		in := strings.Split(line[i+2:], ", ")
		for _, p := range phases {
			if slices.Contains(in, p.name) {
				rows = append(rows, cell{call: asked{side, name}, phase: p.name})
				break
			}
		}
	}
	return rows
}

// answerTable collects what a user saw, cell by cell.
type answerTable struct {
	mu    sync.Mutex
	lines []string
}

func (a *answerTable) add(c cell, x *answering, took time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	saw := strings.Join(slices.Sorted(maps.Keys(x.saw)), ", ")
	if err != nil {
		saw = "FAILED"
	}
	line := fmt.Sprintf("%s\t%s\t%s\t%s\t%s", c.call, c.phase, c.answerText(), cmp.Or(saw, "nothing"),
		took.Round(100*time.Millisecond))
	a.lines = append(a.lines, line)
	x.t.Log("cell: ", line) // a run that is ended early leaves what it saw
}

func (c cell) answerText() string {
	if c.times < 0 {
		return string(c.answer) + ", for a while"
	}
	return string(c.answer)
}

func (a *answerTable) print(t *testing.T) {
	slices.Sort(a.lines)
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 1, 2, ' ', 0)
	fmt.Fprintln(w, "call\tin\tanswer\twhat a user saw\ttook")
	for _, line := range a.lines {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	t.Logf("%d cells\n%s", len(a.lines), &out)
}

// give goes through cells in one world, until one fails.
func (x *answering) give(cells []cell, table *answerTable, commands bool) {
	x.t.Helper()
	for i, c := range cells {
		if c.phase != "begin" && x.d == nil {
			x.d = x.run()
			if err := x.write(); err != nil {
				x.t.Fatal(err)
			}
		}
		began := time.Now()
		err := x.try(c)
		if err == nil && (commands || i == len(cells)-1) {
			err = x.judgeByCommands()
		}
		table.add(c, x, time.Since(began), err)
		if err != nil {
			x.t.Fatalf("%s: %v\nnot tried: %v", c, err, cells[i+1:])
		}
	}
}

// TestEachCallGetsAWrongAnswer, Rule 13: at each call that the replicator makes, its server gives one wrong answer,
// which the seed chooses. Nothing is lost, nothing stays red, and every comparison says equal.
func TestEachCallGetsAWrongAnswer(t *testing.T) {
	long(t, "60 s")
	seed := cmp.Or(*answersSeed, uint64(time.Now().Unix()/86_400))
	t.Logf("-answers.seed=%d", seed)
	rnd, table := rand.New(rand.NewPCG(seed, 29)), &answerTable{}
	t.Cleanup(func() { table.print(t) })
	worlds := map[string][]cell{}
	for i, c := range rowsOfAnswers(t) {
		all := answersOf(c.call)
		c.answer, c.times = all[rnd.IntN(len(all))], 1
		world := map[string]string{"stream": "stream", "rotation": "stream", "archive": "stream", "verify": "commands",
			"resync": "commands", "cutover": "commands", "start": "start", "copy": "start"}[c.phase]
		if world == "" {
			world = fmt.Sprint("begin ", i)
		}
		worlds[world] = append(worlds[world], c)
	}
	for name, cells := range worlds {
		t.Run(name, func(t *testing.T) { newAnswering(t, seed).give(cells, table, false) })
	}
}

// TestEachCallGetsEachWrongAnswer is TestEachCallGetsAWrongAnswer for each answer, once and for a while, and with
// every command's word after each.
func TestEachCallGetsEachWrongAnswer(t *testing.T) {
	if !*answersAll {
		t.Skip("make answers runs it")
	}
	table := &answerTable{}
	t.Cleanup(func() { table.print(t) })
	for _, row := range rowsOfAnswers(t) {
		var cells []cell
		for _, answer := range answersOf(row.call) {
			for _, times := range []int{1, -1} {
				c := cell{call: row.call, phase: row.phase, answer: answer, times: times}
				if strings.Contains(c.String(), *answersOnly) {
					cells = append(cells, c)
				}
			}
		}
		for i, c := range cells {
			switch {
			case c.phase == "begin":
				t.Run(c.String(), func(t *testing.T) { newAnswering(t, 2920).give([]cell{c}, table, true) })
			case i == 0:
				t.Run(c.call.String(), func(t *testing.T) { newAnswering(t, 2920).give(cells, table, true) })
			}
		}
	}
}

// TestEachCallHasARow records the calls of a full run: a call that the matrix does not have fails.
func TestEachCallHasARow(t *testing.T) {
	long(t, "30 s")
	x := newAnswering(t, 2910)
	for _, p := range append(phases[len(phases)-1:], phases[:len(phases)-1]...) {
		x.shim.enter(p.name)
		if err := p.live(x); err != nil {
			t.Fatal(err)
		}
	}
	x.shim.enter("end")
	x.d.checkClean()
	x.d.stop()
	path := filepath.Join("testdata", "answers.txt")
	if *answersUpdate {
		if err := os.WriteFile(path, []byte(strings.Join(x.shim.recorded(), "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range x.shim.recorded() {
		if name := line[:strings.LastIndex(line, ": ")+2]; !strings.Contains("\n"+string(text), "\n"+name) {
			t.Errorf("no row for %s: make answers UPDATE=1 adds it", line)
		}
	}
}
