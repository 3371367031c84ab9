package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
)

// TestGuarded: what changes something is asked for before each attempt, and what
// does not goes on.
func TestGuarded(t *testing.T) {
	sent, refused := 0, errors.New("not now")
	var why error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent++
		why = refused
		w.WriteHeader(http.StatusServiceUnavailable) // to be tried again
	}))
	defer server.Close()
	api := ec2.New(ec2.Options{
		Region: "us-west-2", BaseEndpoint: &server.URL,
		APIOptions: []func(*middleware.Stack) error{guarded(func() error { return why })},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
	terminate := func() error {
		_, err := api.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1"}})
		return err
	}
	if err := terminate(); !errors.Is(err, refused) || sent != 1 {
		t.Errorf("forbidden after the first attempt: %d attempts, %v", sent, err)
	}
	if err := terminate(); !errors.Is(err, refused) || sent != 1 {
		t.Errorf("forbidden: %d attempts, %v", sent, err)
	}
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); errors.Is(err, refused) || sent < 2 {
		t.Errorf("reading is never forbidden: %d attempts, %v", sent, err)
	}
}
