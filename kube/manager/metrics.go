// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/pprof"
	"path/filepath"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karpenter/kube/access"
)

const (
	certFile, keyFile = "tls.crt", "tls.key" // as in secrets of the type kubernetes.io/tls

	// reviewQPS and reviewBurst limit the requests to the API server that
	// authorize scrapes, so that clients of the port cannot slow the
	// controllers down. A scrape takes two requests.
	reviewQPS, reviewBurst = 10, 20
)

// Metrics is how metrics are served.
type Metrics struct {
	Port      int  // 0 = not served
	Profiling bool // serve the Go runtime's profiles, too

	// Secure serves over TLS, and only to clients that the Kubernetes API
	// permits to get the path.
	Secure bool
	// CertDir has the files tls.crt and tls.key, which are read again when
	// they change; "" = a self-signed certificate that is created at the start.
	// Used only if Secure.
	CertDir string

	// Turns are metrics served beside those of controller-runtime's registry. May
	// be nil.
	Turns *Turns
}

// options returns the options for controller-runtime. The scheme must know the
// authentication and authorization APIs.
func (m Metrics) options(scheme *runtime.Scheme) (server.Options, error) {
	out := server.Options{BindAddress: address(m.Port), ExtraHandlers: profiles(m.Profiling), FilterProvider: m.shared}
	if !m.Secure || m.Port == 0 {
		return out, nil
	}
	out.SecureServing, out.CertDir, out.CertName, out.KeyName = true, m.CertDir, certFile, keyFile
	// One scrape is one request; HTTP/2 only gives strangers more to do.
	out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos, c.MinVersion = []string{"http/1.1"}, tls.VersionTLS12 }}
	out.FilterProvider = func(cluster *rest.Config, http *http.Client) (server.Filter, error) {
		return m.reviewed(cluster, http, scheme)
	}
	if m.CertDir != "" {
		// Without the files, controller-runtime would sign a certificate itself.
		if _, err := tls.LoadX509KeyPair(filepath.Join(m.CertDir, certFile), filepath.Join(m.CertDir, keyFile)); err != nil {
			return server.Options{}, fmt.Errorf("certificate of the metrics: want a directory with %s and its %s: %w", certFile, keyFile, err)
		}
		return out, nil
	}
	own, err := selfSigned()
	if err != nil {
		return server.Options{}, fmt.Errorf("certificate of the metrics: %w", err)
	}
	out.TLSOpts = append(out.TLSOpts, func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil }
	})
	return out, nil
}

// selfSigned returns a self-signed certificate for a year. It does not prove
// the identity of the server, but encryption hides tokens from listeners.
func selfSigned() (tls.Certificate, error) {
	pair, key, err := cert.GenerateSelfSignedCertKey("karpenter", nil, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair, key)
}

// shared returns the filter for every handler if any client may scrape.
func (m Metrics) shared(*rest.Config, *http.Client) (server.Filter, error) {
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return share(handler, m.Turns), nil }, nil
}

// reviewed returns the filter for every handler if only authorized clients may
// scrape.
func (m Metrics) reviewed(cluster *rest.Config, http *http.Client, scheme *runtime.Scheme) (server.Filter, error) {
	own := rest.CopyConfig(cluster)
	own.QPS, own.Burst, own.RateLimiter = reviewQPS, reviewBurst, nil
	reviews := meta.NewDefaultRESTMapper(nil)
	reviews.Add(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), meta.RESTScopeRoot)
	reviews.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	asking, err := client.New(own, client.Options{HTTPClient: http, Scheme: scheme, Mapper: reviews})
	if err != nil {
		return nil, fmt.Errorf("ask who may read metrics: %w", err)
	}
	return m.filter(access.Reviewer{Client: asking}), nil
}

func (m Metrics) filter(who access.Reviewer) server.Filter {
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		handler = share(handler, m.Turns)
		failed := func(err error) {
			log.Error(err, "cannot authorize requests for metrics: the API server does not answer access reviews")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !who.Refuse(w, r, failed) {
				handler.ServeHTTP(w, r)
			}
		}), nil
	}
}

// profiles returns the handlers of the Go runtime's profiles.
func profiles(enabled bool) map[string]http.Handler {
	if !enabled {
		return nil
	}
	out := map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, name := range []string{"allocs", "heap", "block", "goroutine", "threadcreate"} {
		out["/debug/pprof/"+name] = pprof.Handler(name)
	}
	return out
}
