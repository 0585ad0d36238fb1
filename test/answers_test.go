package test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/pipeline"
)

var (
	answersSeed   = flag.Uint64("answers.seed", 0, "which answer each call gets in the short form; 0: of the day")
	answersAll    = flag.Bool("answers.all", false, "give each call each answer, once and for a while: make answers")
	answersOnly   = flag.String("answers.only", "", "with -answers.all: only cells with this in their names")
	answersUpdate = flag.Bool("answers.update", false, "record the calls of a full run as the rows of the matrix")
)

const (
	// whileWrong is how long a server gives the wrong answer to every call. The periods of the
	// protocol are seven times shorter here than in production, where it would be about eight
	// seconds.
	whileWrong = 1200 * time.Millisecond
	// healingTime is the longest time until all is well again after the last wrong answer.
	healingTime = 90 * time.Second
	// usualPace is by how much the sandbox's time is advanced at each look.
	usualPace = 300 * time.Millisecond
)

// answering is a world whose servers can be made to give wrong answers, with a replicator that is
// started again when it ends, as an orchestrator does.
type answering struct {
	*world
	shim  *shim
	d     *daemon
	store answerStore     // of the archive
	red   redStates       // what a user may see
	down  bool            // the replicator stays down when it has ended
	pace  time.Duration   // of the sandbox's time, at each look
	items int             // written so far
	saw   map[string]bool // what a user saw since the last cell
}

// newAnswering starts a world whose archive is in the object store of a side.
func newAnswering(t *testing.T, seed uint64, side string) *answering {
	t.Helper()
	x := &answering{world: newWorld(t, seed), shim: newShim(), saw: map[string]bool{}, pace: usualPace}
	x.red = documentedRed(t)
	x.traps.shim = x.shim
	x.dynamo = newHTTPTap(t, x.traps, x.shim.http("dynamodb", dynamoCall, dynamoRefusal, x.DynamoDB))
	x.S3.Use(func(next http.Handler) http.Handler { return x.shim.http("s3", s3Call, s3Refusal, next) })
	between := newNATSShim(t, x.shim, x.NATS.URL())
	x.queue = fmt.Sprintf("{url: \"nats://%s\", max_bytes: 64MiB}", between.addr)
	x.more = []string{"AWS_ENDPOINT_URL_S3=" + x.S3.URL(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=y",
		"TMPDIR=" + t.TempDir()} // worlds beside each other compare tables of one name
	for _, bucket := range []string{"cold", "backups"} {
		if err := x.Buckets.Create(bucket); err != nil {
			t.Fatal(err)
		}
	}
	x.store = newAnswerStore(x, side)
	x.archive = fmt.Sprintf("{url: %q, roll: 1s}", x.store.url)
	x.more = append(x.more, x.store.env...)
	x.tables = []string{"{source: Orders, target: orders, backfill: none, on_ttl_expiry: archive}"}
	x.prepare("Orders")
	return x
}

// phase is a part of the life of a pipeline, with what makes the replicator go through it. It ends
// when the replicator is up to date.
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
	{"archive", (*answering).expire},
	{"hour", (*answering).passHour},
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
	{"keys", func(x *answering) error {
		x.world.write("keys.jsonl", `{"pk":"p","sk":"1"}`+"\n"+`{"pk":"p","sk":"2"}`+"\n")
		x.Clock.Advance(2 * time.Minute) // items that were written less than a minute ago are hot
		return x.run0("resync", "--table", "Orders", "--keys", "keys.jsonl", "--wait")
	}},
	{"letters", (*answering).refuse},
	{"doubt", (*answering).doubt},
	// Before what trims the stream: a new life would wait for a day until it believes that a shard
	// was trimmed.
	{"recover", (*answering).recoverTable},
	{"copy", func(x *answering) error { return x.copyTable("scan") }},
	{"export", func(x *answering) error { return x.copyTable("{from: export, bucket: backups}") }},
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

// refuse lets Bigtable refuse a change for good, and has the dead letter that it becomes applied.
func (x *answering) refuse() error {
	x.shim.provoke(asked{"bigtable", "CheckAndMutateRow of a target"}, sayInvalid, -1)
	x.Put("Orders", "refused", fmt.Sprint(x.items), "")
	x.Clock.Advance(2 * time.Second)
	err := x.until("the change is a dead letter", func() bool {
		return x.d.table("Orders").DeadLetters > 0
	})
	x.shim.appease()
	if err != nil {
		return err
	}
	x.Clock.Advance(2 * time.Minute) // what was written less than a minute ago waits for a later reading
	if err := x.run0("dlq", "retry", "--all"); err != nil {
		return err
	}
	return x.write()
}

// doubt lets the answer about a stored object of the archive be cut off, so that the replicator
// looks whether it is there.
func (x *answering) doubt() error {
	x.shim.provoke(x.store.put, sayCut, 1)
	defer x.shim.appease()
	if err := x.expire(); err != nil {
		return err
	}
	return x.until("the replicator has found the object", func() bool {
		a := x.d.table("Orders").Archive
		return a != nil && a.Waiting == 0 && a.Intents == 0
	})
}

// expire lets an item expire, and waits until it is archived.
func (x *answering) expire() error {
	x.Put("Orders", "session", fmt.Sprint(x.items), fmt.Sprintf(`"expires":{"N":"%d"}`, x.Clock.Now().Unix()-1))
	x.DynamoDB.ExpireNow(x.Clock.Now())
	if err := x.write(); err != nil {
		return err
	}
	return x.until("the expired item is archived", x.allArchived)
}

// passHour waits until the archive closes an hour in which an item has expired.
func (x *answering) passHour() error {
	if err := x.expire(); err != nil {
		return err
	}
	before := x.manifests()
	x.Clock.Advance(70 * time.Minute)
	if err := x.write(); err != nil {
		return err
	}
	return x.until("the archive closes the hour", func() bool { return x.manifests() > before })
}

// manifests counts the hours that the archive has closed.
func (x *answering) manifests() (n int) {
	_ = filepath.WalkDir(x.store.dir(), func(file string, _ fs.DirEntry, _ error) error {
		if filepath.Ext(file) == ".json" {
			n++
		}
		return nil
	})
	return n
}

// copyTable adds a table with items that its stream does not have, and waits until they are copied.
func (x *answering) copyTable(from string) error {
	if from != "scan" { // an export takes minutes
		x.pace = 2 * time.Second
		defer func() { x.pace = usualPace }()
	}
	name := fmt.Sprint("Old", len(x.tables))
	x.CreateTable(name)
	x.Call("UpdateContinuousBackups", fmt.Sprintf(
		`{"TableName":%q,"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, name))
	for i := range 20 {
		x.Put(name, "p", fmt.Sprint(i), `"a":{"S":"old"}`)
	}
	x.Stream.Trim(x.Clock.Now().Add(time.Second))
	x.Clock.Advance(2 * time.Second)
	x.tables = append(x.tables, fmt.Sprintf("{source: %s, target: %s, backfill: %s}", name, target(name), from))
	x.configure()
	if err := x.run0("schema", "--apply"); err != nil {
		return err
	}
	x.d.signal()
	x.d.exit()
	x.d = x.run()
	return x.write()
}

// recoverTable loses the log of a table while the replicator is down, and recovers it.
func (x *answering) recoverTable() error {
	x.d.signal()
	x.d.exit()
	x.down = true
	defer func() { x.down = false }()
	if err := x.loseLog(); err != nil {
		return err
	}
	if err := x.run0("recover", "--all", "--yes"); err != nil {
		return err
	}
	x.Clock.Advance(10 * time.Minute) // all in the table is older than what the new life reads
	x.d, x.down, x.pace = x.run(), false, 3*time.Second
	defer func() { x.pace = usualPace }()
	return x.until("it has recovered", x.d.ready)
}

// logName is the name of the stream that is the log of Orders.
var logName = regexp.MustCompile(`^TAILRACE_shop_Orders_[0-9a-f]{8}$`)

// loseLog deletes the log of Orders from the NATS server.
func (x *answering) loseLog() error {
	nc, err := nats.Connect(x.NATS.URL())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	names, lost := js.StreamNames(x.t.Context()), 0
	for name := range names.Name() {
		if logName.MatchString(name) {
			lost++
			err = errors.Join(err, js.DeleteStream(x.t.Context(), name))
		}
	}
	if lost != 1 {
		err = errors.Join(err, fmt.Errorf("%d logs of Orders", lost))
	}
	return errors.Join(err, names.Err())
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

// until waits, while the sandbox's time goes on, and starts the replicator again where it has
// ended.
func (x *answering) until(what string, is func() bool) error {
	for began := time.Now(); time.Since(began) < healingTime; {
		select {
		case <-x.d.ended:
			if !x.down {
				x.saw[fmt.Sprintf("exit %d", x.d.cmd.ProcessState.ExitCode())] = true
				x.d = x.run()
			}
		default:
		}
		x.look()
		if is() {
			return nil
		}
		x.d.hasten(x.pace)
		<-time.After(50 * time.Millisecond)
	}
	_, status := x.d.get("/status")
	return fmt.Errorf("not within %s: %s; status: %s\n%s", healingTime, what, status, tail(x.d.output.String(), 8))
}

// look notes which states the replicator reports.
func (x *answering) look() {
	s, _ := x.d.status()
	for _, t := range s.Tables {
		if t.State != "running" {
			x.saw[t.State] = true
		}
	}
}

// run0 runs a command until it exits with 0. While a server answers wrongly it may end with 1 or 3,
// a cutover that a halt stands in the way of with 4, and with nothing else.
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
		x.t.Logf("%s: exit %d\n%s%s", strings.Join(args, " "), got, out, errs)
		// A table that is halted for a moment stands in the way of a cutover.
		refused := args[0] == "cutover" && got == 4 && strings.Contains(errs.String(), ": halted: ")
		if got != 1 && got != 3 && !refused || time.Since(began) > healingTime {
			return fmt.Errorf("%s: exit %d: %s%s", strings.Join(args, " "), got, out, errs)
		}
	}
}

// allArchived reports whether the archive has as many events as items have expired.
func (x *answering) allArchived() bool {
	return x.readArchiveOf(filepath.Join(x.store.dir(), "archive")).total == x.expired()
}

// remedy applies the documented remedy for what the answer of a cell leaves red until a user acts.
func (x *answering) remedy(c cell) error {
	if !x.red.documents(c, lettersUntilRetry) {
		return nil
	}
	x.Clock.Advance(2 * time.Minute) // what was written less than a minute ago waits for a later reading
	if err := x.write(); err != nil {
		return err
	}
	if x.d.table("Orders").DeadLetters == 0 {
		return nil
	}
	x.saw[lettersUntilRetry] = true
	return x.run0("dlq", "retry", "--all")
}

// judge checks, after the last wrong answer, that all is well: everything written is applied,
// nothing counts as lost, the replicator is ready, and every comparison says equal.
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
		if err := x.openPair().compare(x.t.Context(), t.Source); err != nil {
			return fmt.Errorf("cell by cell: %w", err)
		}
	}
	if err := x.until("every expired item is archived", x.allArchived); err != nil {
		return err
	}
	select {
	case <-x.d.ended:
		return fmt.Errorf("the process has ended: %v", x.d.cmd.ProcessState)
	default:
		return nil
	}
}

// judgeByCommands checks that the commands report the same.
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

// rowsOfAnswers reads the rows of the matrix: each call with its phases, the cheapest first.
func rowsOfAnswers(t *testing.T) (rows [][]cell) {
	t.Helper()
	text, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		i := strings.LastIndex(line, ": ")
		side, name, _ := strings.Cut(line[:i], " ")
		in := strings.Split(line[i+2:], ", ")
		var row []cell
		for _, p := range phases {
			if slices.Contains(in, p.name) {
				row = append(row, cell{call: asked{side, name}, phase: p.name, times: 1})
			}
		}
		if len(row) == 0 {
			t.Fatalf("a call of no phase: %s", line)
		}
		rows = append(rows, row)
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

// enter makes what the phase of a cell finds: a replicator that runs, and for calls about a closed
// hour of the archive such an hour.
func (x *answering) enter(c cell) error {
	if c.phase == "begin" {
		return nil
	}
	if x.d == nil {
		x.d = x.run()
		if err := x.write(); err != nil {
			return err
		}
	}
	manifest := strings.HasSuffix(c.call.name, ".json") && !strings.Contains(c.call.name, "backups/")
	if manifest && c.phase != "hour" && x.manifests() == 0 {
		return x.passHour()
	}
	return nil
}

// passes reports whether a state ends without a user, or with the same command again.
func passes(what string) bool { return what == "halted" || strings.Contains(what, ": exit ") }

// give goes through cells in one world, until one fails. In the whole matrix, commands judge after
// each cell, and each red state must be documented. The short form lists in its table of cells the
// halts that end by themselves and the commands that were run again: on a busy machine more calls
// are late than the one that got the answer.
func (x *answering) give(cells []cell, table *answerTable, whole bool) {
	x.t.Helper()
	for i, c := range cells {
		if err := x.enter(c); err != nil {
			x.t.Fatal(err)
		}
		began := time.Now()
		err := x.try(c)
		if err == nil && (whole || i == len(cells)-1) {
			err = x.judgeByCommands()
		}
		if err == nil {
			saw := maps.Clone(x.saw)
			if !whole {
				maps.DeleteFunc(saw, func(what string, _ bool) bool { return passes(what) })
			}
			if also := errors.Join(x.red.allows(c, saw), x.eachHasARow()); also != nil {
				x.t.Errorf("%s: %v", c, also) // the world is well
			}
		}
		table.add(c, x, time.Since(began), err)
		if err != nil {
			x.t.Fatalf("%s: %v\nnot tried: %v", c, err, cells[i+1:])
		}
	}
}

// TestEachCallGetsAWrongAnswer, Rule 13: at each call that the replicator makes, its server gives
// one wrong answer, which the seed chooses. Nothing is lost, nothing stays red, and every
// comparison says equal.
func TestEachCallGetsAWrongAnswer(t *testing.T) {
	long(t, "60 s")
	t.Parallel()
	seed := cmp.Or(*answersSeed, uint64(time.Now().Unix()/86_400))
	t.Logf("-answers.seed=%d", seed)
	rnd, table := rand.New(rand.NewPCG(seed, 29)), &answerTable{}
	t.Cleanup(func() { table.print(t) })
	worlds := map[string][]cell{}
	for i, row := range rowsOfAnswers(t) {
		c, all := row[0], answersOf(row[0].call)
		c.answer = all[rnd.IntN(len(all))]
		world := c.phase
		switch c.phase { // a world has few cells: some take ten seconds
		case "begin", "recover":
			world = fmt.Sprint(c.phase, " ", i)
		case "start", "export":
			world = fmt.Sprint(c.phase, " ", i%4)
		case "stream", "rotation", "archive", "hour":
			world = fmt.Sprint("stream ", i%4)
		case "verify", "resync", "keys", "cutover":
			world = fmt.Sprint("commands ", i%3)
		}
		world += " of " + storeSide(c.call.side)
		worlds[world] = append(worlds[world], c)
	}
	for name, cells := range worlds {
		t.Run(name, func(t *testing.T) { newAnswering(t, seed, cells[0].call.side).give(cells, table, false) })
	}
}

// TestEachCallGetsEachWrongAnswer is TestEachCallGetsAWrongAnswer for each answer, once and for a
// while, and with every command's word after each.
func TestEachCallGetsEachWrongAnswer(t *testing.T) {
	if !*answersAll {
		t.Skip("make answers runs it")
	}
	table := &answerTable{}
	t.Cleanup(func() { table.print(t) })
	for name, cells := range allAnswers(rowsOfAnswers(t)) {
		cells = slices.DeleteFunc(cells, func(c cell) bool { return !strings.Contains(c.String(), *answersOnly) })
		if len(cells) > 0 {
			t.Run(name, func(t *testing.T) { newAnswering(t, 2920, cells[0].call.side).give(cells, table, true) })
		}
	}
}

// allAnswers lists the cells of the whole matrix, by world: each call gets each answer, once and
// for a while, in its cheapest phase, and one answer in each other phase.
func allAnswers(rows [][]cell) map[string][]cell {
	worlds := map[string][]cell{}
	add := func(world string, c cell) {
		if c.phase == "begin" || c.phase == "recover" { // a pipeline begins once, and notes a loss once
			world = c.String()
		}
		worlds[world] = append(worlds[world], c)
	}
	for i, row := range rows {
		answers := answersOf(row[0].call)
		for _, answer := range answers {
			for _, times := range []int{1, -1} {
				c := row[0]
				c.answer, c.times = answer, times
				add(c.call.String(), c)
			}
		}
		for j, c := range row[1:] {
			if c.phase == "start" && c.call.name == "INFO" { // before anything that tries again
				for _, answer := range answers {
					c.answer = answer
					add("INFO at the start", c)
				}
				continue
			}
			c.answer = answers[(i+j)%len(answers)]
			add(fmt.Sprintf("%s, side %s, part %d", c.phase, storeSide(c.call.side), i%6), c)
		}
	}
	return worlds
}

// storeSide returns the side whose object store a world of the calls of a side has.
func storeSide(side string) string {
	if side == "gcs" || side == "azure" {
		return side
	}
	return "s3"
}

// TestEachCallHasARow records the calls of a full run: a call that the matrix does not have fails.
func TestEachCallHasARow(t *testing.T) {
	long(t, "30 s")
	t.Parallel()
	var mu sync.Mutex
	var all []string
	t.Cleanup(func() {
		slices.Sort(all)
		if *answersUpdate && !t.Failed() {
			if err := os.WriteFile(answersFile, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, side := range []string{"s3", "gcs", "azure"} {
		t.Run(side, func(t *testing.T) {
			x := newAnswering(t, 2910, side)
			x.liveThrough()
			mu.Lock()
			defer mu.Unlock()
			for _, line := range x.shim.recorded() {
				if side == "s3" || strings.HasPrefix(line, side) {
					all = append(all, line)
				}
			}
			if *answersUpdate {
				return
			}
			if err := x.eachHasARow(); err != nil {
				t.Error(err)
			}
		})
	}
}

// liveThrough goes through all phases, and, where the archive is in another store than S3, through
// those that use it.
func (x *answering) liveThrough() {
	x.t.Helper()
	for _, p := range append(phases[len(phases)-1:], phases[:len(phases)-1]...) {
		if x.store.side != "s3" && !slices.Contains([]string{"begin", "archive", "hour", "start", "doubt"}, p.name) {
			continue
		}
		x.shim.enter(p.name)
		if err := p.live(x); err != nil {
			x.t.Fatalf("%s: %v", p.name, err)
		}
	}
	x.shim.enter("end")
	x.d.checkClean()
	x.d.stop()
}

// answersFile has the rows of the matrix.
var answersFile = filepath.Join("testdata", "answers.txt")

// eachHasARow returns an error that names the recorded calls of which the matrix has no row.
func (x *answering) eachHasARow() error {
	text, err := os.ReadFile(answersFile)
	if err != nil {
		return err
	}
	var missing []string
	for _, line := range x.shim.recorded() {
		if name := line[:strings.LastIndex(line, ": ")+2]; !strings.Contains("\n"+string(text), "\n"+name) {
			missing = append(missing, line)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no row: make answers UPDATE=1 adds it:\n%s", strings.Join(missing, "\n"))
	}
	return nil
}
