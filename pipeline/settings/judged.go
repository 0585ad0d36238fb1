package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

// Codes of what cannot be read.
const (
	UnreadFamilies  = "gc_rules"
	UnreadProfile   = "app_profile"
	UnreadCopies    = "copy_profile"
	UnreadLifecycle = "lifecycle"
)

// Families judges how an instance differs from the tables that the mappings need.
func Families(found []tableschema.Difference) (all protocol.Premises) {
	for _, d := range found {
		all = append(all, Family(d))
	}
	return all
}

// Family judges one difference.
func Family(d tableschema.Difference) protocol.Premise {
	f := protocol.Family{
		Code: string(d.Kind), Role: protocol.RoleData, Table: d.Table, Name: d.Family, Found: d.Have, Wanted: d.Want,
		Mend: strings.Join(d.CBT(), "; "), Keeps: d.Keeps, Needs: d.Needs,
	}
	switch {
	case d.Table == tableschema.StateTable:
		f.Role = protocol.RoleState
	case d.Family == transform.LiveFamily:
		f.Role = protocol.RoleLive
	case d.Family == transform.DeadFamily:
		f.Role = protocol.RoleDead
	}
	return f.Premise()
}

// Differences judges the answer of comparing an instance with the tables that the mappings need. An
// error that does not concern the settings is returned.
func Differences(found []tableschema.Difference, err error) (protocol.Premises, error) {
	if bigtable.Classify(err) == failure.Denied {
		return unread(UnreadFamilies, "Bigtable", "bigtable.tables.get is not permitted: "+err.Error()), nil
	}
	return Families(found), err
}

// Profile judges the answer of reading the app profile of the stream. An error that does not
// concern the settings is returned.
func Profile(p bigtable.Profile, instance string, err error) (protocol.Premises, error) {
	return profile(judged(p, instance), UnreadProfile, err)
}

// CopyProfile judges the answer of reading the app profile of copies beside that of the stream,
// which has no cluster where it could not be read.
func CopyProfile(p, stream bigtable.Profile, instance string, err error) (protocol.Premises, error) {
	of, beside := judged(p, instance), judged(stream, instance)
	of.Stream = &beside
	return profile(of, UnreadCopies, err)
}

// ReadCopyProfile reads and judges the app profile of copies; nil if they have none of their own.
func ReadCopyProfile(ctx context.Context, client *bigtable.Client) (protocol.Premises, error) {
	if !client.HasCopyProfile() {
		return nil, nil
	}
	stream, err := client.Profile(ctx)
	if err != nil {
		if all, err := Profile(stream, client.Instance(), err); err != nil || all == nil {
			return nil, err // it is transient, or the server has no profiles
		}
	}
	p, err := client.CopyProfile(ctx)
	return CopyProfile(p, stream, client.Instance(), err)
}

func judged(p bigtable.Profile, instance string) protocol.Profile {
	return protocol.Profile{
		Name: p.Name, Instance: instance, SingleCluster: p.SingleCluster, Transactional: p.Transactional,
		DataBoost: p.DataBoost, Cluster: p.Cluster,
	}
}

func profile(of protocol.Profile, code string, err error) (protocol.Premises, error) {
	switch class := bigtable.Classify(err); {
	case err == nil:
	case errors.Is(err, bigtable.ErrNoProfiles):
		return nil, nil
	case class == failure.Denied:
		why := "bigtable.appProfiles.get is not permitted, so a fail-over to another cluster is not noticed either: "
		return unread(code, "Bigtable", why+err.Error()), nil
	case class == failure.Missing:
		of.Missing = true
	default:
		return nil, err
	}
	return of.Premises(), nil
}

// Lifecycle judges the answer of reading the rules of the archive's bucket; url is the URL in its
// configuration. An error that does not concern the settings is returned.
func Lifecycle(url string, rules []bucket.Expiry, err error) (protocol.Premises, error) {
	switch {
	case errors.Is(err, bucket.ErrNoLifecycle):
		return unread(UnreadLifecycle, "the bucket of the archive", err.Error()), nil
	case bucket.Classify(err) == failure.Denied:
		why := "s3:GetLifecycleConfiguration or storage.buckets.get is not permitted: "
		return unread(UnreadLifecycle, "the bucket of the archive", why+err.Error()), nil
	case err != nil:
		return nil, err
	}
	all := make([]protocol.Expiry, len(rules))
	for i, r := range rules {
		all[i] = protocol.Expiry(r)
	}
	mend := ""
	scheme, rest, _ := strings.Cut(url, "://")
	name, _, _ := strings.Cut(strings.ReplaceAll(rest, "?", "/"), "/")
	switch scheme {
	case "s3":
		mend = "aws s3api put-bucket-lifecycle-configuration --bucket " + name + " --lifecycle-configuration FILE"
	case "gs":
		mend = "gcloud storage buckets update gs://" + name + " --lifecycle-file=FILE"
	}
	return protocol.Lifecycle(scheme+"://"+name, all, layout.Own, layout.AdoptHours*time.Hour, mend), nil
}

// unread returns what cannot be read.
func unread(code, what, why string) protocol.Premises {
	return protocol.Premises{{Code: code, What: what, Unread: why}}
}

// DifferenceText describes a table or family that the Bigtable instance lacks, or has with other
// settings than the mapping needs, and what a wrong rule does.
func DifferenceText(d tableschema.Difference) string {
	name := d.Table
	if d.Family != "" {
		name += ":" + d.Family
	}
	if d.Have == "missing" {
		return strings.TrimSuffix(fmt.Sprintf("%s is missing (%s)", name, d.Want), " (table)")
	}
	text := fmt.Sprintf("%s: has %s, needs %s", name, d.Have, d.Want)
	switch p := Family(d); {
	case p.Unsafe:
		text += ": " + p.Cost + "; `run` writes nothing to Bigtable"
	case p.Cost != "":
		text += ": " + p.Cost
	}
	return text
}
