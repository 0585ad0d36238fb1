package export

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
)

const (
	container  = "AWSDynamoDB" // the folder that DynamoDB puts all exports in
	dataFolder = "data"
	startedTag = "_started" // written first, to see whether the bucket can be written to
	maxFolders = 300        // looked into below a URL
)

// locate returns the folder with the manifests: at itself, the folder of the manifest at at, or the
// only folder below.
func locate(ctx context.Context, s store, at string) (root string, err error) {
	if name := base(at); name == summaryName || name == filesName {
		return parent(at), nil
	}
	files, dirs, err := s.list(ctx, at)
	if err != nil {
		return "", err
	}
	switch complete, started := state(files); {
	case complete:
		return at, nil
	case started:
		return "", incomplete(s.url(at))
	}
	candidates, err := below(ctx, s, at, dirs)
	if err != nil {
		return "", err
	}
	var found, unfinished []string
	for _, dir := range candidates {
		files, _, err := s.list(ctx, dir)
		if err != nil {
			return "", err
		}
		switch complete, started := state(files); {
		case complete:
			found = append(found, dir)
		case started:
			unfinished = append(unfinished, s.url(dir))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", several(s, found)
	case len(unfinished) > 0:
		return "", incomplete(strings.Join(unfinished, ", "))
	}
	return "", refused(failure.Missing, "name the folder with manifest-summary.json, or one of the two above it",
		"no export in %s: it has no %s, nor has a folder in it or in its %s", s.url(at), summaryName, container)
}

// state returns whether a folder has a complete export, or one that has started.
func state(files map[string]int64) (complete, started bool) {
	_, complete = files[summaryName]
	_, started = files[startedTag]
	return complete, started
}

// below returns the folders below at that may have an export.
func below(ctx context.Context, s store, at string, dirs []string) (all []string, err error) {
	for _, dir := range dirs {
		switch dir {
		case dataFolder:
		case "": // at is a prefix that ends in a slash, without it
			if at == "" {
				continue
			}
			_, names, err := s.list(ctx, join(at, ""))
			if err != nil {
				return nil, err
			}
			more, err := below(ctx, s, join(at, ""), names)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		case container:
			_, ids, err := s.list(ctx, join(at, container))
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				if id != dataFolder {
					all = append(all, join(join(at, container), id))
				}
			}
		default:
			all = append(all, join(at, dir))
		}
	}
	if len(all) > maxFolders {
		return nil, refused(failure.Rejected, "name the folder of the export", "%s has %d folders", s.url(at), len(all))
	}
	return all, nil
}

func several(s store, found []string) error {
	slices.Sort(found)
	const shown = 20
	var list []string
	for _, dir := range found[:min(len(found), shown)] {
		list = append(list, s.url(dir))
	}
	more := ""
	if len(found) > shown {
		more = fmt.Sprintf(" and %d more", len(found)-shown)
	}
	return refused(failure.Rejected, "name one of them", "there are %d exports: %s%s", len(found),
		strings.Join(list, ", "), more)
}

func incomplete(where string) error {
	return refused(failure.Rejected, "wait until aws dynamodb describe-export says COMPLETED; if it does, copy all its "+
		"files", "the export in %s has begun and is not complete: it has no %s", where, summaryName)
}
