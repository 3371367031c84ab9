// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
)

// fence is open while why is nil; closed ends what it holds.
type fence struct {
	mu     sync.Mutex
	why    error
	closed chan struct{}
}

func (f *fence) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

func (f *fence) Hold(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := f.Check(); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-held.Done():
		case <-f.closed:
			cancel(f.Check())
		}
	}()
	return held, func() { cancel(nil) }, nil
}

// close closes the fence for the reason.
func (f *fence) close(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why == nil {
		f.why = why
		close(f.closed)
	}
}

// behindFence returns EC2 at the address, whose changes the fence allows.
func behindFence(f *fence, address string, client aws.HTTPClient) *ec2.Client {
	return ec2.New(ec2.Options{
		Region: "us-west-2", BaseEndpoint: &address, HTTPClient: client,
		APIOptions: []func(*middleware.Stack) error{guarded(f)},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
}

func terminate(ctx context.Context, api *ec2.Client) error {
	_, err := api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
	return err
}

// TestGuarded: what changes something is asked for before each attempt, and what
// does not goes on.
func TestGuarded(t *testing.T) {
	sent, refused := 0, errors.New("not now")
	f := &fence{closed: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent++
		w.WriteHeader(http.StatusServiceUnavailable) // to be tried again
	}))
	defer server.Close()
	api := behindFence(f, server.URL, refusing{f, refused, http.DefaultClient})
	if err := terminate(t.Context(), api); !errors.Is(err, refused) || sent != 1 {
		t.Errorf("forbidden after the first attempt: %d attempts, %v", sent, err)
	}
	if err := terminate(t.Context(), api); !errors.Is(err, refused) || sent != 1 {
		t.Errorf("forbidden: %d attempts, %v", sent, err)
	}
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); errors.Is(err, refused) || sent < 2 {
		t.Errorf("reading is never forbidden: %d attempts, %v", sent, err)
	}
}

// refusing closes the fence once an answer has come.
type refusing struct {
	fence *fence
	why   error
	aws.HTTPClient
}

func (r refusing) Do(request *http.Request) (*http.Response, error) {
	defer r.fence.close(r.why)
	return r.HTTPClient.Do(request)
}

// TestFencedCallIsCancelled: a call that changes something is not waited for when the lease may
// be another's; one that reads is.
func TestFencedCallIsCancelled(t *testing.T) {
	refused := errors.New("another replica may lead")
	f := &fence{closed: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.Check() == nil {
			_, _ = io.Copy(io.Discard, r.Body) // for the server to see that no one waits any more
			f.close(refused)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `<DescribeSubnetsResponse><subnetSet/></DescribeSubnetsResponse>`)
	}))
	defer server.Close()
	api := behindFence(f, server.URL, NewHTTP(nil))
	if err := terminate(t.Context(), api); !errors.Is(err, refused) {
		t.Errorf("the call ended with %v, want %v", err, refused)
	}
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// TestGuardedBody: a process that stands still while the connection is made has no
// timer that runs out: the body is not given out then.
func TestGuardedBody(t *testing.T) {
	refused := errors.New("another replica may lead")
	f := &fence{closed: make(chan struct{})}
	arrived := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 {
			arrived++
		}
	}))
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		dial := tr.DialContext
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			f.mu.Lock()
			f.why = refused // without the end of what is held
			f.mu.Unlock()
			return dial(ctx, network, address)
		}
	})
	err := terminate(t.Context(), behindFence(f, server.URL, NewHTTP(transport)))
	server.Close() // waits for what was sent
	if !errors.Is(err, refused) || arrived != 0 {
		t.Errorf("%d requests arrived, %v", arrived, err)
	}
}
