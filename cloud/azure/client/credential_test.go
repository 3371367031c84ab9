// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
)

// TestNoToken covers spec 71/110: who gives no token in time ends the start, with a
// message that says what to do.
func TestNoToken(t *testing.T) {
	asked, ends := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-ends:
		}
	}))
	defer silent.Close()
	defer close(ends)
	for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS"} {
		t.Setenv(name, "") // and back afterwards
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("IDENTITY_ENDPOINT", silent.URL)
	t.Setenv("IDENTITY_HEADER", "secret")
	t.Setenv("PATH", t.TempDir()) // no other tool has a login
	_, err := credentialWithin(t.Context(), azure.AzurePublic, 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no token for Azure within 200ms") || !strings.Contains(err.Error(), "azure.workload.identity/use=true") {
		t.Errorf("error is %v", err)
	}
	select {
	case <-asked:
	default:
		t.Errorf("nobody was asked for a token: %v", err)
	}
	if tokenWait != 5*time.Second {
		t.Errorf("the first token may take %v", tokenWait)
	}
}
