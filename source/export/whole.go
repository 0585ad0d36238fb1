package export

import (
	"context"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// Wholeness is whether an export has all items of its table, or all that changed, with all their
// attributes.
type Wholeness string

// What is known of an export.
const (
	Whole       Wholeness = "whole"       // DynamoDB describes it without a filter
	Filtered    Wholeness = "filtered"    // it was made with a filter, a projection or a key condition
	Unconfirmed Wholeness = "unconfirmed" // DynamoDB could not be asked, and the manifest says nothing
)

// wholeness is the one place that decides whether an export is whole, by its description and its
// manifest. A manifest without a filter proves nothing: no AWS document states that it would name
// one.
//
// Rule 14: the first copy, healing, resyncs and checks open exports here, and branch on the result.
func wholeness(described bool, filters, manifest []string) Wholeness {
	switch {
	case len(filters) > 0, len(manifest) > 0:
		return Filtered
	case described:
		return Whole
	}
	return Unconfirmed
}

// askWhether checks with DynamoDB whether the export is whole, and refuses one that is not. If
// DynamoDB cannot be asked, the export is Unconfirmed and carries the reason.
//
// Rule 13: a manifest that names no filter is no evidence that there was none.
func (e *Export) askWhether(ctx context.Context, src *source.Source, manifest []string) error {
	var filters []string
	described := false
	switch {
	case src == nil:
		e.Unasked = "there is no source to ask"
	case e.ARN == "":
		e.Unasked = "the manifest does not name the export"
	default:
		st, unknown, err := src.AskExport(ctx, e.ARN, e.TableARN)
		switch {
		case err != nil:
			return err
		case unknown != nil:
			e.Unasked = unknown.Error()
		case st.Failure() != nil:
			return st.Failure()
		case st.Status != source.ExportCompleted: // the manifests are written last
			return refused(failure.Transient, "", "%s is %s, although its manifests are there", e.ARN, st.Status)
		case st.TableID != "" && st.TableID != e.TableID:
			return refused(failure.Fatal, again, "%s names table id %s, DynamoDB says that the export is of %s", summaryName,
				e.TableID, st.TableID)
		default:
			filters, described = st.Filters, true
		}
	}
	return e.judge(described, filters, manifest)
}

// judge sets the wholeness, and refuses an export that is Filtered.
func (e *Export) judge(described bool, filters, manifest []string) error {
	if e.Wholeness = wholeness(described, filters, manifest); e.Wholeness == Filtered {
		return refused(failure.Rejected, "export the table again without FilterSpecification",
			"the export is not whole: it was made with %s, and lacks what that left out",
			strings.Join(slices.Compact(slices.Sorted(slices.Values(append(filters, manifest...)))), " and "))
	}
	return nil
}
