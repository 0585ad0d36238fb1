package preflight

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

// archive looks whether the archive's bucket can be listed. It creates nothing: whether objects may
// be created, and each name only once, shows at the start of run.
func (c *check) archive(ctx context.Context) {
	if c.cfg.Archive.URL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	b, err := c.clients.Bucket(ctx, bucket.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(c.cfg.Archive.URL, "file:") {
		return // run makes the directory
	}
	if err == nil {
		for _, err = range b.List(ctx, "_tailrace/") {
			break // the first answer is enough
		}
	}
	if err != nil {
		c.failed("archive", "archive.url", failure.With(failure.Unready, bucket.Hint(err), err))
		return
	}
	c.bucket = true
	rules, err := bucket.Lifecycle(ctx, b)
	c.add(lifecycleProblems(c.cfg.Archive.URL, rules, err)...)
}

// lifecycleProblems judges the lifecycle of the archive's bucket, or the error of reading it, as
// run does.
func lifecycleProblems(url string, rules []bucket.Expiry, err error) (problems []problem.Problem) {
	found, err := settings.Lifecycle(url, rules, err)
	if err != nil {
		found = protocol.Premises{{Unread: err.Error()}}
	}
	for i := range found {
		switch p := &found[i]; {
		case p.Unread != "":
			problems = append(problems, warnf("lifecycle_unknown", "archive.url",
				"look at the rules yourself: none may delete what is below _tailrace/ of the archive",
				"the lifecycle of the archive's bucket cannot be read: %s", p.Unread))
		case p.Notice:
			problems = append(problems, warnf("lifecycle", "archive.url", "is this how long archived items are to be kept?",
				"%s", p.State()))
		default:
			problems = append(problems, errorf("lifecycle", "archive.url", p.Mend, "%s", p.State()))
		}
	}
	return problems
}

// keepArchive returns what an archive in S3 takes: list the bucket and look at its lifecycle, get
// and create objects. None is deleted.
func keepArchive(partition string, a *config.Archive) []Statement {
	place, ok := strings.CutPrefix(a.URL, "s3://")
	if !ok {
		return nil
	}
	place, _, _ = strings.Cut(place, "?")
	name, prefix, _ := strings.Cut(place, "/")
	both := readExport(partition, name, prefix)
	both[0].Action = []string{"s3:GetObject", "s3:PutObject"}
	both[1].Action = []string{"s3:ListBucket", "s3:GetLifecycleConfiguration"}
	return both
}

// storeBindings returns the roles that an archive in Google Cloud Storage takes.
func storeBindings(a *config.Archive) (all []Bindings) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "gs" {
		return nil
	}
	for _, role := range []string{
		"roles/storage.objectCreator", "roles/storage.objectViewer", "roles/storage.legacyBucketReader",
	} {
		use := "the archive"
		if role == "roles/storage.legacyBucketReader" {
			use = "looking at the lifecycle of its bucket"
		}
		all = append(all, Bindings{
			For: use, Role: role,
			Command: "gcloud storage buckets add-iam-policy-binding gs://" + u.Host + " --member=MEMBER --role=" + role,
		})
	}
	return all
}
