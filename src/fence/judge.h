/* What a fence makes of a path: whether a refusal that a command was told of can have been its. */
#pragma once

#include "run/fence.h"

enum judgement {
    JUDGED_OPEN,      /* it may be changed */
    JUDGED_READ_ONLY, /* it lies outside of what may be changed */
    JUDGED_PROTECTED, /* it lies in what may be changed, and is an exception */
    JUDGED_HIDDEN
};

/* path is absolute, without links. */
enum judgement fence_judge(const struct fence *fence, const char *path);
