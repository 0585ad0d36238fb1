package export

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// openS3 opens s3://bucket with the identity of the source. ?region=R names the region of the
// bucket.
func openS3(ctx context.Context, u *url.URL, src *source.Source) (store, error) {
	if src == nil {
		return nil, refused(failure.Fatal, "", "no source of credentials for S3")
	}
	client := src.Buckets()
	if region := u.Query().Get("region"); region != "" {
		client = s3.New(client.Options(), func(o *s3.Options) { o.Region = region })
	}
	b, err := s3blob.OpenBucket(ctx, client, u.Host, nil)
	if err != nil {
		return nil, err
	}
	return &bucket{b, inS3{}, u.Scheme, u.Host, u.RawQuery}, nil
}

// inS3 is S3 as a service.
type inS3 struct{}

func (inS3) stored() *blob.ReaderOptions { return nil } // S3 unpacks nothing

func (inS3) lacks(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound && !isCode(err, "NoSuchBucket")
}

func (inS3) explain(err error) (failure.Class, string) {
	class, hint := source.Classify(err), ""
	switch {
	case isCode(err, "NoSuchBucket"):
		class, hint = failure.Missing, "check the bucket's name"
	case isCode(err, "PermanentRedirect"), isCode(err, "AuthorizationHeaderMalformed"), isCode(err, "MovedPermanently"):
		class, hint = failure.Rejected, "the bucket is in another region: add ?region=REGION to the URL"
	case class == failure.Denied:
		hint = "check the policy: s3:ListBucket on the bucket, s3:GetObject on the export, and kms:Decrypt if it is " +
			"encrypted with a key of yours"
	}
	return class, hint
}
