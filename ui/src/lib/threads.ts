// Comments as threads.

import type { Comment } from './types';

export interface Thread {
  first: Comment;
  replies: Comment[];
  isResolved: boolean;
}

/** The threads in the order of their first comments. */
export function threadsOf(comments: Comment[]): Thread[] {
  return comments
    .filter((one) => one.parent === null)
    .map((first) => ({ first, replies: comments.filter((one) => one.parent === first.id), isResolved: first.resolved_by !== null }));
}
