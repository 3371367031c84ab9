// SPDX-License-Identifier: Apache-2.0

// Package access asks the Kubernetes API who sends an HTTP request to this
// process, and whether that user may get the path.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnknown reports a token that the API server does not accept.
var ErrUnknown = errors.New("the token is not valid in this cluster")

// ForbiddenError reports a user who has no permission to get a path.
type ForbiddenError struct{ user, path, reason string }

// Error names the user and what to grant.
func (e ForbiddenError) Error() string {
	text := fmt.Sprintf("%s may not get %s: a ClusterRole with that path in nonResourceURLs allows it", e.user, e.path)
	if e.reason != "" {
		text += " (" + e.reason + ")"
	}
	return text
}

// Reviewer authenticates and authorizes requests. It caches nothing: each
// request asks the API server.
type Reviewer struct {
	Client client.Client // may create TokenReviews and SubjectAccessReviews
}

// Allow returns nil if the owner of the token may get the path.
func (r Reviewer) Allow(ctx context.Context, token, path string) error {
	if token == "" {
		return ErrUnknown
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.Client.Create(ctx, who); err != nil {
		return fmt.Errorf("review token: %w", err)
	}
	if !who.Status.Authenticated {
		return ErrUnknown
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	if err := r.Client.Create(ctx, may); err != nil {
		return fmt.Errorf("review access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return ForbiddenError{user.Username, path, may.Status.Reason}
	}
	return nil
}

// Refuse answers the request and returns true, unless the owner of its bearer
// token may get its path. If the API server gives no answer, Refuse passes the
// error to failed.
func (r Reviewer) Refuse(w http.ResponseWriter, q *http.Request, failed func(error)) bool {
	scheme, token, _ := strings.Cut(q.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	var forbidden ForbiddenError
	switch err := r.Allow(q.Context(), token, q.URL.Path); {
	case err == nil:
		return false
	case errors.Is(err, ErrUnknown):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.As(err, &forbidden):
		http.Error(w, err.Error(), http.StatusForbidden)
	default:
		failed(err)
		http.Error(w, "the API server does not say who may ask; see the log of the controller", http.StatusInternalServerError)
	}
	return true
}
