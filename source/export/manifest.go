package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
)

const (
	summaryName = "manifest-summary.json"
	filesName   = "manifest-files.json"
	maxManifest = 256 << 20 // bytes: a line of 200 for each of a million files
)

// checksumSuffixes replace .json in the name of a manifest's checksum file. The service writes the
// first; its guide names the second.
var checksumSuffixes = []string{".md5", ".checksum"}

// summary is manifest-summary.json.
type summary struct {
	ExportArn, TableArn, TableID                       string
	ExportTime, ExportFromTime, ExportToTime           string
	ManifestFilesS3Key                                 string
	BilledSizeBytes, ItemCount                         int64
	OutputFormat, OutputView, ExportType, ExportStatus string

	filters []string // names of members that tell of a filter
}

// kind returns the export's type; the first version of the manifest knew only full exports.
func (s *summary) kind() string { return cmp.Or(s.ExportType, Full) }

func readSummary(ctx context.Context, s store, root string) (*summary, error) {
	text, err := readManifest(ctx, s, join(root, summaryName))
	if err != nil {
		return nil, err
	}
	m, err := parseSummary(text)
	if err != nil {
		return nil, refused(failure.Fatal, again, "read %s: %w", s.url(join(root, summaryName)), err)
	}
	return m, nil
}

func parseSummary(text []byte) (*summary, error) {
	var m summary
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.TableArn == "" || m.ManifestFilesS3Key == "" || m.ItemCount < 0 {
		return nil, errors.New("tableArn or manifestFilesS3Key is missing, or itemCount is negative")
	}
	var err error
	m.filters, err = filtersOf(text)
	return &m, err
}

// filterWords are in the names under which a summary might tell of a filter. No document names one:
// FilterSpecification is the member of DescribeExport, and the others are members of it.
var filterWords = []string{"filter", "projectionexpression", "keycondition"}

// filtersOf returns the members of a summary that tell of a filter, at any depth, sorted.
func filtersOf(summary []byte) (names []string, err error) {
	dec := json.NewDecoder(bytes.NewReader(summary))
	dec.UseNumber()
	var top any
	if err := dec.Decode(&top); err != nil {
		return nil, errors.New("not JSON")
	}
	found := map[string]bool{}
	findFilters(top, found)
	return slices.Sorted(maps.Keys(found)), nil
}

// findFilters notes the names of members that tell of a filter and are not empty.
func findFilters(value any, found map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			about := slices.ContainsFunc(filterWords, func(w string) bool { return strings.Contains(strings.ToLower(name), w) })
			if about && !isNothing(member) {
				found[name] = true
			} else {
				findFilters(member, found)
			}
		}
	case []any:
		for _, member := range v {
			findFilters(member, found)
		}
	}
}

// isNothing reports whether a member holds nothing.
func isNothing(member any) bool {
	switch v := member.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !isNothing(inner) {
				return false
			}
		}
		return true
	}
	return false
}

func readFiles(ctx context.Context, s store, root string) ([]File, error) {
	text, err := readManifest(ctx, s, join(root, filesName))
	if err != nil {
		return nil, err
	}
	files, err := parseFiles(text)
	if err != nil {
		return nil, refused(failure.Fatal, again, "read %s: %w", s.url(join(root, filesName)), err)
	}
	return files, nil
}

// parseFiles reads manifest-files.json: a JSON object for each data file.
func parseFiles(text []byte) (files []File, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for seen := map[string]bool{}; ; {
		var entry struct {
			ItemCount                        *int64
			MD5Checksum, ETag, DataFileS3Key string
		}
		switch err := dec.Decode(&entry); {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, fmt.Errorf("entry %d: %w", len(files)+1, err)
		}
		sum, err := base64.StdEncoding.DecodeString(entry.MD5Checksum)
		switch {
		case err != nil || len(sum) != md5.Size:
			return nil, fmt.Errorf("entry %d: md5Checksum %q is not an MD5", len(files)+1, entry.MD5Checksum)
		case entry.DataFileS3Key == "" || seen[entry.DataFileS3Key]:
			return nil, fmt.Errorf("entry %d: dataFileS3Key %q is empty or repeated", len(files)+1, entry.DataFileS3Key)
		case entry.ItemCount == nil || *entry.ItemCount < 0:
			return nil, fmt.Errorf("entry %d: itemCount is missing or negative", len(files)+1)
		}
		seen[entry.DataFileS3Key] = true
		files = append(files, File{
			Key: entry.DataFileS3Key, Items: *entry.ItemCount, MD5: entry.MD5Checksum, ETag: entry.ETag,
		})
	}
}

// Digest returns the SHA-256, in hexadecimal, of the checksums and counts of all files in their
// order: two exports with one digest have the same lines under the same numbers, wherever they lie.
func (e *Export) Digest() string {
	sum := sha256.New()
	for i := range e.Files {
		fmt.Fprintf(sum, "%s %d\n", e.Files[i].MD5, e.Files[i].Items)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// readManifest reads a manifest and compares it with its checksum.
func readManifest(ctx context.Context, s store, key string) ([]byte, error) {
	text, err := readSmall(ctx, s, key, maxManifest)
	if err != nil {
		return nil, err
	}
	for _, suffix := range checksumSuffixes {
		sum, err := readSmall(ctx, s, strings.TrimSuffix(key, ".json")+suffix, 1<<10)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case !isChecksum(text, string(bytes.TrimSpace(sum))):
			return nil, refused(failure.Fatal, again, "%s does not have the MD5 that its %s file says", s.url(key), suffix)
		}
		return text, nil
	}
	return nil, missing(s.url(strings.TrimSuffix(key, ".json") + checksumSuffixes[0]))
}

// isChecksum reports whether the MD5 of text is sum, in base64 or hexadecimal.
func isChecksum(text []byte, sum string) bool {
	actual := md5.Sum(text)
	return sum == base64.StdEncoding.EncodeToString(actual[:]) || strings.EqualFold(sum, hex.EncodeToString(actual[:]))
}

// readSmall reads a file of at most limit bytes.
func readSmall(ctx context.Context, s store, key string, limit int64) ([]byte, error) {
	r, _, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, refused(failure.Transient, "", "read %s: %w", s.url(key), err)
	case int64(len(text)) > limit:
		return nil, refused(failure.Fatal, again, "%s is longer than %d bytes", s.url(key), limit)
	}
	return text, nil
}
