package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aws/smithy-go"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// again is what to do about an export that is not as DynamoDB wrote it.
const again = "copy the export again from the bucket that DynamoDB wrote it to, or export the table again"

// refused returns an error with a class and what to do. wrap adds what was tried.
func refused(class failure.Class, hint, format string, args ...any) error {
	return &source.Error{Class: class, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// missing returns the error about a file that is not there.
func missing(url string) error {
	return &source.Error{
		Class: failure.Missing, Err: fmt.Errorf("%s: %w", url, fs.ErrNotExist),
		Hint: "copy the whole export: manifest-*.json, manifest-*.md5 and all files of its folder data; those of an " +
			"incremental export are in AWSDynamoDB/data; then check that no lifecycle rule deleted it",
	}
}

// noScratch returns the error about a scratch folder that cannot hold a data file.
func noScratch(dir string, size int64, err error) error {
	return refused(failure.Fatal, "make room, or set scratch to a folder with room",
		"copy %d MB to the scratch folder %q: %w", size>>20+1, dir, err)
}

// wrap returns an error with what was tried. Once ctx has ended the class is Canceled, whatever err
// is.
func wrap(ctx context.Context, op string, err error) error {
	own := (*source.Error)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &source.Error{Op: op, Class: failure.Canceled, Err: context.Cause(ctx)}
	case errors.As(err, &own) && own.Op == "":
		return &source.Error{Op: op, Class: own.Class, Hint: own.Hint, Err: own.Err}
	}
	return &source.Error{Op: op, Class: source.Classify(err), Err: err}
}

// isCode reports whether S3 refused a call with that code.
func isCode(err error, code string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == code
}
