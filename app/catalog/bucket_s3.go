package catalog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"loom/app/loom"
)

// A request to S3 is made three times at most. These bound each of them, also where the
// store takes a connection and then says nothing.
const (
	s3Connect  = 5 * time.Second
	s3Silence  = time.Minute
	s3Backoff  = time.Second
	s3Attempts = 3
)

// s3Bucket is what the portable bucket leaves out: uploads in parts, and credentials.
type s3Bucket struct {
	client       *s3.Client
	name, prefix string
}

// openS3 opens a bucket such as "s3://loom?region=eu-central-1". Credentials are those of
// the environment, a profile or a role, never part of the URL.
func openS3(u *url.URL) (*blob.Bucket, *s3Bucket, error) {
	q := u.Query()
	endpoint, err := url.Parse(q.Get("endpoint"))
	switch {
	case u.User != nil || err == nil && endpoint.User != nil:
		return nil, nil, badURL("holds a user or password. Take them out and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case err != nil || endpoint.String() != "" && endpoint.Host == "":
		return nil, nil, badURL("has an endpoint that is no URL. Enter one such as https://s3.example.org")
	case u.Host == "" || strings.Trim(u.Path, "/") != "":
		return nil, nil, badURL("names no bucket. Enter s3://BUCKET?region=REGION, and a folder of the bucket as prefix=FOLDER/")
	}
	prefix := q.Get("prefix")
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	q.Del("prefix")
	plain := *u
	plain.RawQuery = q.Encode()
	ctx := context.Background()
	opener := &s3blob.URLOpener{}
	opened, err := opener.OpenBucketURL(ctx, &plain)
	if err != nil {
		// The error itself repeats the URL.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return nil, nil, badURL("is refused: %v. Correct its parameters", err)
	}
	var client *s3.Client
	if !opened.As(&client) {
		return nil, nil, errors.New("open the bucket: no client of S3")
	}
	options := client.Options()
	if options.Region == "" {
		return nil, nil, badURL("names no region. Add region=us-east-1, or the region of the bucket, or set AWS_REGION")
	}
	client = s3.New(options, bound)
	bucket, err := s3blob.OpenBucket(ctx, client, u.Host, &opener.Options)
	if err != nil {
		return nil, nil, fmt.Errorf("open the bucket: %w", err)
	}
	if prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix)
	}
	return bucket, &s3Bucket{client, u.Host, prefix}, nil
}

func badURL(format string, args ...any) error {
	return loom.NewError(loom.Invalid, "LOOM_RESOURCES_URL "+format+".", args...)
}

// bound limits how long requests take.
func bound(o *s3.Options) {
	o.HTTPClient = awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) { d.Timeout = s3Connect }).WithReadTimeout(s3Silence)
	o.Logger = logging.Nop{} // it notes each file without a checksum
	o.Retryer = retry.AddWithMaxBackoffDelay(retry.AddWithMaxAttempts(o.Retryer, s3Attempts), s3Backoff)
}

// dropParts deletes the parts of uploads of keys with a prefix that began before a time
// and never ended, and returns how many uploads these were. S3 keeps, and charges for, what
// nobody lists.
func (b *s3Bucket) dropParts(ctx context.Context, prefix string, before time.Time) (int, error) {
	dropped := 0
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: sdk.String(b.prefix + prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if code(err) == "NotImplemented" {
			return dropped, nil // such a store has no parts to keep
		}
		if err != nil {
			return dropped, err
		}
		for _, upload := range page.Uploads {
			if !sdk.ToTime(upload.Initiated).Before(before) {
				continue
			}
			_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.name, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil && code(err) != "NoSuchUpload" {
				return dropped, err
			}
			dropped++
		}
	}
	return dropped, nil
}

// code is what S3 calls an error, "" where S3 did not answer.
func code(err error) string {
	var said smithy.APIError
	if errors.As(err, &said) {
		return said.ErrorCode()
	}
	return ""
}

// remedy says what is wrong with the store and what to do about it.
func (b *s3Bucket) remedy(ctx context.Context, err error) string {
	switch code := code(err); code {
	case "":
	case "NoSuchBucket":
		return noBucket
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken":
		return "The file store refuses Loom's credentials (" + code + "). Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile or role that LOOM_RESOURCES_URL names."
	case "AccessDenied", "Forbidden":
		return "The file store denies Loom access (" + code + "). Let its credentials list the bucket of LOOM_RESOURCES_URL and its uploads, and read, write and delete objects."
	default:
		return "The file store answers " + code + ". Check it, and LOOM_RESOURCES_URL with its region, endpoint and credentials."
	}
	if _, err := b.client.Options().Credentials.Retrieve(ctx); err != nil && ctx.Err() == nil {
		return "Loom has no credentials for the file store. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile in LOOM_RESOURCES_URL."
	}
	return ""
}
