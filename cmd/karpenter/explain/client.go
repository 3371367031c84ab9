package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultAddress is where the command asks unless it is told otherwise.
const DefaultAddress = "127.0.0.1:8082"

const tokenSeconds = 600 // the shortest life the API server grants

// Loopback reports an error unless the address is host:port of this machine:
// tokens must not travel further in the clear.
func Loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("want host:port of this machine, such as " + DefaultAddress + "; kubectl port-forward reaches one elsewhere")
	}
	return nil
}

// Ask returns what a Server at the address has at the path.
func Ask(ctx context.Context, address, token, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	// No proxy: the token stays on this machine.
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the controller (it serves explanations when EXPLAIN_BIND_ADDRESS is set): %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the controller: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the controller answers %s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

// Token returns what identifies the user towards a Server: a short-lived token
// of the service account namespace/name, or the token of the kubeconfig when
// that is "". A client certificate cannot be shown to anybody but the API
// server.
func Token(ctx context.Context, cluster *rest.Config, serviceAccount string) (string, error) {
	if serviceAccount != "" {
		return requestToken(ctx, cluster, serviceAccount)
	}
	switch {
	case cluster.BearerToken != "":
		return cluster.BearerToken, nil
	case cluster.BearerTokenFile != "":
		text, err := os.ReadFile(cluster.BearerTokenFile)
		if err != nil {
			return "", fmt.Errorf("read token: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return "", errors.New("the kubeconfig holds no token, and a certificate can be shown to the API server only: name a service account, --service-account namespace/name")
}

func requestToken(ctx context.Context, cluster *rest.Config, serviceAccount string) (string, error) {
	namespace, name, ok := strings.Cut(serviceAccount, "/")
	if !ok {
		return "", fmt.Errorf("--service-account: %q: want namespace/name", serviceAccount)
	}
	api, err := client.New(cluster, client.Options{})
	if err != nil {
		return "", err
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := api.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", serviceAccount, err)
	}
	return request.Status.Token, nil
}
