package client

import (
	"io"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// timeout is how long one HTTP request may take.
const timeout = 4 * time.Minute

// HTTP is the SDK's HTTP client, without one of its faults: a request's body
// that is closed, as it is once the answer has come, fails when it is asked to
// write itself, instead of having nothing to write. If that is while the
// transport still looks for the body's end, it closes the connection, and the
// answer cannot be read.
type HTTP struct{ client *awshttp.BuildableClient }

// NewHTTP returns the client.
func NewHTTP() HTTP { return HTTP{awshttp.NewBuildableClient().WithTimeout(timeout)} }

// Do sends the request.
func (h HTTP) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body} // which can be read only
	}
	return h.client.Do(r)
}
