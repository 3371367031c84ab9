// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSchemes: a token is reviewed only if the scheme is Bearer, in upper or
// lower case.
func TestSchemes(t *testing.T) {
	asked := 0
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch r := o.(type) {
			case *authenticationv1.TokenReview:
				asked++
				r.Status.Authenticated = r.Spec.Token == "ann"
			case *authorizationv1.SubjectAccessReview:
				r.Status.Allowed = true
			}
			return nil
		},
	}).Build()
	for _, x := range []struct {
		header      string
		code, asked int
	}{
		{"Bearer ann", 200, 1},
		{"bearer ann", 200, 1},
		{"Bearer eve", 401, 1},
		{"Bearer ", 401, 0},
		{"Basic ann", 401, 0},
		{"ann", 401, 0},
		{"", 401, 0},
	} {
		asked = 0
		r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", x.header)
		refused := Reviewer{Client: c}.Refuse(w, r, func(err error) { t.Error(err) })
		if w.Code != x.code || refused != (x.code != 200) || asked != x.asked {
			t.Errorf("%q: refused %t with %d, asked %d times; want %d and %d", x.header, refused, w.Code, asked, x.code, x.asked)
		}
	}
}
