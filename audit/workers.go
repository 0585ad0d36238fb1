package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// Workers is where a comparison on a distributed engine leaves its plan, and gets its findings.
type Workers struct {
	Folder  string        // URL, as package bucket reads it: each comparison makes a folder below it
	Exports string        // s3://bucket/prefix for the exports; "": Folder
	Region  string        // of s3:// URLs that name none
	Poll    time.Duration // between looks; 0: 15 s
}

const (
	jobFile     = "job.json"
	workersPoll = 15 * time.Second
	// mostRanges bounds the ranges, which have an object each: of 5e9 rows one has a million, and
	// the records of these take 90 MB.
	mostRanges = 5000
)

// job is what a process notes of a comparison by workers, so that the next one goes on with it.
type job struct {
	ID      string   `json:"id"`
	Record  string   `json:"record"` // Saved.Folder of the record that began before the exports
	Folder  string   `json:"folder"`
	Exports []string `json:"exports,omitempty"` // ARNs, by table
	// Planned: the folder has a plan, or had one. Findings of one plan are none of the next one's:
	// its ranges are others.
	Planned bool `json:"planned,omitempty"`
}

func hasJob(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, jobFile))
	return err == nil
}

// forgetJob removes the note of a comparison: the next one starts from the beginning.
func forgetJob(dir string) error {
	if err := os.Remove(filepath.Join(dir, jobFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// byWorkers is verify.Full on the machines of a distributed engine: it has the tables exported,
// plans the comparison, waits until workers have compared every range of rows, and joins what they
// found. The record of the comparison began before, so the logs hold every change since the
// exports.
func (r *run) byWorkers(
	ctx context.Context, o verify.FullOptions, tables []verify.Table, target verify.Target,
) (*verify.Findings, error) {
	for _, t := range r.pair.Tables {
		if t.Program.HasSecrets() || t.Program.SealsKeys() {
			return nil, failure.Usagef("without --workers it is compared in this process",
				"workers cannot compare %s: %s", t.Source, transform.UnfitSecrets.Why())
		}
	}
	w := &byWorkers{run: r, dir: o.Dir, poll: r.o.Workers.Poll}
	if w.poll == 0 {
		w.poll = workersPoll
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = w.folder.Close() }() // what was written is durable
	plan, err := w.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.await(ctx, plan); err != nil {
		return nil, err
	}
	return w.join(ctx, plan, o, tables, target)
}

type byWorkers struct {
	*run
	dir    string
	poll   time.Duration
	job    job
	folder *distributed.Folder
}

// begin goes on with the noted comparison, or notes a new one. It goes on only where the record of
// this process is the one that began before the exports: between them and a later record, changes
// would be compared by neither.
func (w *byWorkers) begin() error {
	record := w.recorder.result.Folder
	text, err := os.ReadFile(filepath.Join(w.dir, jobFile))
	if err == nil && json.Unmarshal(text, &w.job) == nil && w.job.ID != "" && w.job.Record == record {
		if at, err := w.folderOf(w.job.ID); err == nil && at == w.job.Folder { // else another URL is given now
			w.say("going on with comparison " + w.job.ID)
			return nil
		}
	}
	return w.beginNew(job{Record: record})
}

// beginNew notes a new comparison, with a folder of its own.
func (w *byWorkers) beginNew(j job) (err error) {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	w.job, w.job.ID = j, hex.EncodeToString(id[:])
	if w.job.Folder, err = w.folderOf(w.job.ID); err != nil {
		const hint = "s3://bucket/prefix, or gs://bucket/prefix with --exports s3://bucket/prefix"
		return failure.Usagef(hint, "--workers: %w", err)
	}
	return w.note()
}

// open opens the folder of the comparison.
func (w *byWorkers) open(ctx context.Context) (err error) {
	if w.folder, err = distributed.Open(ctx, w.job.Folder, w.o.Workers.Region); err == nil {
		return nil
	}
	if bucket.Classify(err) == failure.Rejected {
		_ = forgetJob(w.dir) // the next one has another URL
		return failure.Usagef(bucket.Hint(err), "--workers: %w", err)
	}
	return explainFolder(err)
}

// folderOf returns the URL of the folder of a comparison.
func (w *byWorkers) folderOf(id string) (string, error) {
	return below(w.o.Workers.Folder, "comparison-"+id)
}

// below returns the URL of a folder below one.
func below(rawURL, name string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" {
		return "", errors.New("it is no URL of a folder") // the text of a URL may hold a password
	}
	return u.JoinPath(name).String(), nil
}

// note replaces the note of the comparison.
func (w *byWorkers) note() error {
	text, err := json.Marshal(w.job)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("note the comparison: %w", err)
	}
	path := filepath.Join(w.dir, jobFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("note the comparison: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("note the comparison: %w", err)
	}
	return nil
}

// plan returns the plan of the comparison, and makes it if there is none.
func (w *byWorkers) plan(ctx context.Context) (*distributed.Plan, error) {
	p, err := w.folder.Plan(ctx)
	switch {
	case err == nil && p.ID != w.job.ID:
		_ = forgetJob(w.dir) // the next one has another folder
		return nil, failure.With(failure.Unready, "start it again: it begins another one",
			fmt.Errorf("%s has the plan of comparison %s", w.job.Folder, p.ID))
	case !errors.Is(err, bucket.ErrNotFound):
		return p, explainFolder(err)
	case w.job.Planned:
		w.say("the plan of comparison " + w.job.ID + " is gone: another one begins, with the same exports")
		_ = w.folder.Close() // nothing was written
		if err := w.beginNew(job{Record: w.job.Record, Exports: w.job.Exports}); err != nil {
			return nil, err
		}
		if err := w.open(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.request(ctx); err != nil {
		return nil, err
	}
	if p, err = w.exported(ctx); err != nil {
		return nil, err
	}
	// The rows must have every change that the exports show.
	latest := change.Millis(0)
	for i := range p.Tables {
		latest = max(latest, p.Tables[i].Export.Time)
	}
	if err := w.pair.Prove(ctx, latest+protocol.DateStep); err != nil {
		return nil, fmt.Errorf("prove that Bigtable has what the exports show: %w", err)
	}
	splits, err := w.pair.Sink().SplitKeys(ctx, w.pair.Target)
	if err != nil {
		return nil, bigtable.Explain(fmt.Errorf("divide the rows of %s: %w", w.pair.Target, err))
	}
	for i := 0; i < len(splits); i += 1 + len(splits)/mostRanges {
		p.Splits = append(p.Splits, []byte(splits[i]))
	}
	p.Now, p.Lead = w.pair.Now(), w.pair.Lead()
	w.job.Planned = true
	if err := w.note(); err != nil {
		return nil, err
	}
	return p, explainFolder(w.folder.StorePlan(ctx, p))
}

// await prints the command that compares, and waits until every range has findings.
func (w *byWorkers) await(ctx context.Context, p *distributed.Plan) error {
	w.say(fmt.Sprintf("%d files and %d ranges of rows wait for workers (docs/bulk.md):", p.Files(), p.Ranges()))
	w.say("  replicator-bulk verify --comparison " + w.job.Folder)
	for n := 0; ; {
		stored, err := w.folder.Stored(ctx, p)
		switch {
		case err == nil && len(stored) == p.Ranges():
			return nil
		case err == nil:
			n = 0
			w.step("ranges", int64(len(stored)), int64(p.Ranges()))
		default:
			if n++; bucket.Classify(err) != failure.Transient || n == 20 {
				return explainFolder(err)
			}
		}
		if err := failure.Pause(ctx, w.poll); err != nil {
			return err
		}
	}
}

// join joins the findings of all ranges.
func (w *byWorkers) join(
	ctx context.Context, p *distributed.Plan, o verify.FullOptions, tables []verify.Table, target verify.Target,
) (*verify.Findings, error) {
	j, err := verify.Join(o, tables, target)
	if err != nil {
		return nil, err
	}
	for n := range p.Ranges() {
		if err := w.folder.ReadRange(ctx, p, n, func(r io.Reader) error { return j.Add(r) }); err != nil {
			_ = j.Close()                              // of files that are made again
			if bucket.Classify(err) == failure.Fatal { // it can be read, and is damaged
				err = failure.With(failure.Unready, "delete that object, launch the job again, and then start this again", err)
			}
			return nil, explainFolder(err)
		}
	}
	found, err := j.End()
	if err != nil {
		return nil, err
	}
	for i := range p.Tables { // an export without files has no page that was read at some time
		found.Counts.Counted(0, 0, p.Tables[i].Export.Time)
		found.ByTable[i].Counted(0, 0, p.Tables[i].Export.Time)
	}
	return found, nil
}

// explainFolder gives an error of the folder its class and hint.
func explainFolder(err error) error {
	if err == nil {
		return nil
	}
	if class, hint := failure.Of(err); hint != "" || class == failure.Usage {
		return err
	}
	return failure.With(bucket.Classify(err), bucket.Hint(err), err)
}
