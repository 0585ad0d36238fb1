package bucket

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"

	"cloud.google.com/go/auth"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"google.golang.org/api/googleapi"

	"github.com/tailrace-cdc/replicator/failure"
)

// reply is how a service refused a call.
type reply struct {
	status int
	code   string // the service's word for it, if it has one
}

// replyOf returns the reply in an error; false if the service has not answered.
func replyOf(err error) (r reply, ok bool) {
	var (
		response *smithyhttp.ResponseError
		api      smithy.APIError
		google   *googleapi.Error
		azure    *azcore.ResponseError
		identity *azidentity.AuthenticationFailedError
	)
	switch {
	case err == nil:
		return reply{}, false
	case errors.As(err, &identity) || withoutCredentials(err):
		return reply{}, false // the answer came from another service
	case errors.As(err, &response):
		if errors.As(err, &api) {
			r.code = api.ErrorCode()
		}
		r.status = response.HTTPStatusCode()
		return r, r.status >= http.StatusMultipleChoices
	case errors.As(err, &google):
		if len(google.Errors) > 0 {
			r.code = google.Errors[0].Reason
		}
		r.status = google.Code
		return r, true
	case errors.As(err, &azure):
		return reply{azure.StatusCode, azure.ErrorCode}, true
	}
	return reply{}, false
}

// withoutCredentials reports whether a call to S3 was never sent because nothing could sign it:
// what refused was the instance's metadata service, or STS. The SDK has no type for that.
func withoutCredentials(err error) bool { return strings.Contains(err.Error(), "get credentials:") }

// taken reports whether the service has an object of the name. Azure answers 409 where the others
// answer 412.
func (r reply) taken() bool {
	return r.status == http.StatusPreconditionFailed || r.code == "BlobAlreadyExists"
}

// codes are the reply codes that are more specific than the status.
var codes = map[string]struct {
	class failure.Class
	hint  string
}{
	"RequestTimeout":            {class: failure.Transient}, // 400: the body came too slowly
	"BadDigest":                 {class: failure.Transient}, // 400: the bytes were altered on their way
	"Md5Mismatch":               {class: failure.Transient},
	"XAmzContentSHA256Mismatch": {class: failure.Transient},
	"SlowDown":                  {class: failure.Throttled},
	"ServerBusy":                {class: failure.Throttled},
	"RequestTimeTooSkewed":      {failure.Denied, "set the clock of this machine"},
	"NotImplemented":            {failure.Fatal, hintConditions},
	"PermanentRedirect":         {failure.Rejected, hintRegion},
	"AuthorizationHeaderMalformed": {
		failure.Rejected, hintRegion,
	},
	"InvalidBucketName":   {failure.Rejected, "correct the URL"},
	"InvalidResourceName": {failure.Rejected, "correct the URL"},
	"QuotaExceeded":       {failure.Fatal, hintFull},
	"XMinioStorageFull":   {failure.Fatal, hintFull},
	"XMinioAdminBucketQuotaExceeded": {
		failure.Fatal, hintFull,
	},
	"BlobArchived": {failure.Rejected, "move the blob out of the tier Archive to read it"},
	"InvalidObjectState": {
		failure.Rejected, "restore the object from its storage class (Glacier) to read it",
	},
}

// errNotStore is an answer that lacks what the service states in each of its answers.
var errNotStore = errors.New("the answer does not come from the object store")

const (
	hintNotStore = "something between the replicator and the object store answers in its place: a proxy, a login page, " +
		"or a wrong endpoint"
	hintRegion     = "the bucket is in another region: add ?region=REGION to the URL"
	hintFull       = "make room in the object store, or raise the quota"
	hintConditions = "the store does not know conditions of writes (If-None-Match): update it, or take another one"
	hintRights     = "grant on BUCKET, for S3: s3:PutObject, s3:GetObject, s3:ListBucket, and the KMS key's use; for " +
		"Google: storage.objects.create, .get and .list; for Azure: Storage Blob Data Contributor"
)

// class returns class and hint of a reply.
func (r reply) class() (failure.Class, string) {
	if known, ok := codes[r.code]; ok {
		return known.class, known.hint
	}
	switch s := r.status; {
	case s < http.StatusMultipleChoices:
		return failure.Transient, hintNotStore
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return failure.Throttled, ""
	case s == http.StatusNotImplemented:
		return failure.Fatal, hintConditions
	case s == http.StatusInsufficientStorage:
		return failure.Fatal, hintFull
	case s >= http.StatusInternalServerError, s == http.StatusRequestTimeout:
		return failure.Transient, ""
	case s == http.StatusConflict: // another request for the key was under way
		return failure.Transient, ""
	case s == http.StatusNotFound:
		return failure.Missing, "make the bucket BUCKET, or correct the URL"
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return failure.Denied, hintRights
	case s >= http.StatusMultipleChoices && s < http.StatusBadRequest:
		return failure.Rejected, hintRegion
	}
	return failure.Fatal, ""
}

// classOfCall returns class and hint of an error without a reply.
func classOfCall(err error) (failure.Class, string) {
	var (
		token       *auth.Error
		identity    *azidentity.AuthenticationFailedError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failure.Transient, ""
	case errors.As(err, &token) && token.Temporary():
		return failure.Transient, ""
	case withoutCredentials(err):
		return failure.Denied, "give the process credentials of AWS: AWS_ACCESS_KEY_ID, AWS_PROFILE, or the role of its " +
			"instance or pod; with assume_role in the URL, let them take that role (docs/credentials.md)"
	case errors.As(err, &token), errors.As(err, &identity),
		strings.Contains(err.Error(), "DefaultAzureCredential"): // the SDKs have no types for all of them
		return failure.Denied, "check the credentials of the archive's object store"
	case errors.As(err, &certificate):
		return failure.Fatal, "the object store's certificate is not trusted here: check the endpoint, or SSL_CERT_FILE"
	}
	return failure.Transient, "" // the network
}
