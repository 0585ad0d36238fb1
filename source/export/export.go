package export

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

// Want is what an export must be, and what is needed to read it.
type Want struct {
	TableID  string // of the table; "": any
	TableARN string // of the table; "": any

	KeysOnly bool // of an incremental export only the keys are needed, so that it may have any view

	// Source asks DynamoDB about the export, and reads s3:// with its identity. Folders and gs://
	// need none.
	Source  *source.Source
	Known   *Known // what is known of the export already: DynamoDB is not asked
	Scratch string // folder for copies of data files while they are read; "": the system's
}

// Known is what a process needs of DynamoDB to read an export that another process has opened and
// judged.
type Known struct {
	Heartbeats *heartbeat.Filter // of the table; nil: it has none
	Wholeness  Wholeness
}

// The kinds of exports.
const (
	Full        = "FULL_EXPORT"
	Incremental = "INCREMENTAL_EXPORT"
)

// Export is a complete export of one table. ReadFile may be called concurrently.
type Export struct {
	URL      string // of the folder with the manifests; Open finds the same export by it
	ARN      string
	Table    string // name of the table
	TableARN string
	TableID  string
	Kind     string        // Full or Incremental
	Time     change.Millis // of the state that a full export shows; 0 for an incremental one
	From, To change.Millis // an incremental export has the changes from From on and before To
	Items    int64         // lines of all files
	Bytes    int64         // of the table, as AWS charges for them
	Files    []File

	Wholeness Wholeness // Whole or Unconfirmed: one that is Filtered is not opened
	Unasked   string    // why DynamoDB could not be asked, of one that is Unconfirmed

	heartbeats *heartbeat.Filter // of the table; their lines are left out
	store      store
	scratch    string
	silence    time.Duration // after which a read that makes no progress is given up
}

// File is a data file of an export.
type File struct {
	Key   string // path from the folder or the bucket
	Items int64  // lines
	Size  int64  // bytes, compressed
	MD5   string // base64, of the compressed bytes
	ETag  string
}

// Open reads the manifests of an export and checks that the export is of the wanted table, in
// DynamoDB JSON, that it is not filtered, and that all its files are there. url is file:///folder,
// a path, gs://bucket/prefix, or s3://bucket/prefix, where ?region=R names the bucket's region if
// that is another one than the table's. It may name the folder with the manifests, one of the
// manifests, or a folder above with exactly one export.
func Open(ctx context.Context, url string, want Want) (*Export, error) {
	fail := func(err error) error { return wrap(ctx, "open export "+url, err) }
	store, at, err := openStore(ctx, url, want.Source)
	if err != nil {
		return nil, fail(err)
	}
	root, err := locate(ctx, store, at)
	if err != nil {
		return nil, fail(err)
	}
	s, err := readSummary(ctx, store, root)
	if err != nil {
		return nil, fail(err)
	}
	e, err := s.export(want)
	if err != nil {
		return nil, fail(err)
	}
	if err := e.learn(ctx, want, s.filters); err != nil {
		return nil, fail(err)
	}
	e.URL, e.store, e.scratch, e.silence = store.url(root), store, want.Scratch, time.Minute
	if want.Source != nil {
		e.silence = max(e.silence, want.Source.CallTimeout())
	}
	if e.Files, err = readFiles(ctx, store, root); err != nil {
		return nil, fail(err)
	}
	if err := e.place(ctx, root, s.ManifestFilesS3Key); err != nil {
		return nil, fail(err)
	}
	return e, nil
}

// learn sets what the files of an export do not contain: whether it is whole, and which of its
// lines are heartbeats.
func (e *Export) learn(ctx context.Context, want Want, manifest []string) (err error) {
	if want.Known != nil {
		e.heartbeats = want.Known.Heartbeats
		return e.judge(want.Known.Wholeness == Whole, nil, manifest)
	}
	if err := e.askWhether(ctx, want.Source, manifest); err != nil || want.Source == nil {
		return err
	}
	e.heartbeats, err = want.Source.Heartbeats(ctx, e.Table)
	return err
}

// export checks the summary against what is wanted, and copies it.
func (s *summary) export(want Want) (*Export, error) {
	e := &Export{
		ARN: s.ExportArn, TableARN: s.TableArn, TableID: s.TableID, Table: tableName(s.TableArn), Kind: s.kind(),
		Items: s.ItemCount, Bytes: s.BilledSizeBytes,
	}
	var err error
	switch {
	case s.ExportStatus != "" && s.ExportStatus != source.ExportCompleted:
		return nil, refused(failure.Rejected, "wait until it is completed, or ask for another one",
			"the export is %s, not %s", s.ExportStatus, source.ExportCompleted)
	case s.OutputFormat != "DYNAMODB_JSON":
		return nil, refused(failure.Rejected, "export the table again with --export-format DYNAMODB_JSON",
			"the export's format is %q: only DYNAMODB_JSON is read, because its items are the same typed JSON as those "+
				"of the stream, so that both become the same cells", s.OutputFormat)
	case want.TableID != "" && s.TableID != want.TableID, want.TableARN != "" && s.TableArn != want.TableARN:
		return nil, refused(failure.Rejected, "name an export of this table; a table that was created again has another id",
			"the export is of table %s with id %s, not of %s with id %s", s.TableArn, s.TableID,
			cmp.Or(want.TableARN, "the table"), want.TableID)
	case e.Kind == Full:
		e.Time, err = millis("exportTime", s.ExportTime)
	case e.Kind != Incremental:
		return nil, refused(failure.Rejected, "", "the export's type is %q, not %s or %s", e.Kind, Full, Incremental)
	case s.OutputView != "NEW_AND_OLD_IMAGES" && !want.KeysOnly:
		return nil, refused(failure.Rejected, "export again with ExportViewType NEW_AND_OLD_IMAGES",
			"the incremental export has the view %q: old images are needed", s.OutputView)
	default:
		if e.From, err = millis("exportFromTime", s.ExportFromTime); err == nil {
			e.To, err = millis("exportToTime", s.ExportToTime)
		}
	}
	if err != nil {
		return nil, refused(failure.Fatal, again, "%s: %w", summaryName, err)
	}
	return e, nil
}

// tableName returns the name in a table's ARN.
func tableName(arn string) string {
	_, name, _ := strings.Cut(arn, ":table/")
	return name
}

func millis(name, text string) (change.Millis, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a time", name, text)
	}
	return change.MillisOf(t), nil
}

// place finds the data files next to the manifests, and checks that they exist and that their items
// add up to the export's count. The manifests name keys of the bucket that DynamoDB wrote to. The
// export may have been copied elsewhere, so only the path from the manifest to each file counts.
func (e *Export) place(ctx context.Context, root, manifest string) error {
	var items int64
	sizes := map[string]map[string]int64{} // folder → file → bytes
	for i := range e.Files {
		f := &e.Files[i]
		items += f.Items
		key, err := relocate(f.Key, manifest, root)
		if err != nil {
			return refused(failure.Fatal, again, "%w", err)
		}
		dir, name := parent(key), base(key)
		if sizes[dir] == nil {
			if sizes[dir], _, err = e.store.list(ctx, dir); err != nil {
				return err
			}
		}
		size, ok := sizes[dir][name]
		if !ok {
			return missing(e.store.url(key))
		}
		f.Key, f.Size = key, size
	}
	if items != e.Items {
		return refused(failure.Fatal, again, "%s counts %d items, the files of %s have %d", summaryName, e.Items,
			filesName, items)
	}
	return nil
}

// relocate returns where a data file lies, given the key that DynamoDB wrote it to, the key that
// the manifest was written to, and where the manifest's folder is now. A full export has its files
// in data/ below that folder, an incremental one in data/ next to it.
func relocate(key, manifest, root string) (string, error) {
	dir := parent(manifest)
	if rest, ok := strings.CutPrefix(key, dir+"/"); ok && isPlain(rest) {
		return join(root, rest), nil
	}
	if rest, ok := strings.CutPrefix(key, parent(dir)+"/"); ok && isPlain(rest) && strings.Contains(dir, "/") {
		return join(parent(root), rest), nil
	}
	return "", fmt.Errorf("data file %q is not below the folder of %q", key, manifest)
}

// isPlain reports whether a path only goes down.
func isPlain(p string) bool { return p != "" && path.Clean("/"+p) == "/"+p }
